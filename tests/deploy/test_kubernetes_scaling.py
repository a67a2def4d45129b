"""What KEDA and Prometheus are told in Kubernetes: of metrics that there are, with the numbers that are meant."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from tests.deploy.monitoring import program
from tests.deploy.promql import check, evaluate, labels_of, metrics_of, there_are
from tests.deploy.rendered import FOLDER, ROOT, Object, one, ports


def scaling() -> Object:
    spec: Object = one("keda", "ScaledObject", "hairmesh-worker")["spec"]
    return spec


def query(trigger: str) -> str:
    found: str = next(each for each in scaling()["triggers"] if each["name"] == trigger)["metadata"]["query"]
    return found


def test_scaling_rests_on_metrics_that_there_are(tmp_path: Path) -> None:
    queries = [trigger["metadata"]["query"] for trigger in scaling()["triggers"]]
    check(queries, tmp_path)
    metrics = {name for each in queries for name in metrics_of(each)}
    assert metrics == {
        "hairmesh_slots_busy",
        "hairmesh_queue_waiting",
        "hairmesh_pool_worker_online",
        "hairmesh_queue_wait_seconds_bucket",
    }
    for each in queries:
        known = {label for name in metrics_of(each) for label in there_are()[name].labels}
        assert labels_of(each) <= known | {"job", "le"}
    assert scaling()["scaleTargetRef"]["name"] == "hairmesh-worker"
    assert scaling()["minReplicaCount"] >= 1  # with none, calls are refused at once and nothing waits
    assert "replicas" not in one("keda", "Deployment", "hairmesh-worker")["spec"]


def test_work_is_counted_in_workers_and_silence_is_no_number(tmp_path: Path) -> None:
    busy = {f'hairmesh_slots_busy{{job="hairmesh-edge",edge="{edge}"}}': "3x20" for edge in "ab"}
    waiting = {
        f'hairmesh_queue_waiting{{job="hairmesh-edge",edge="{edge}",class="{kind}"}}': "1x20"
        for edge in "ab"
        for kind in ("fast", "slow")
    }
    evaluate(query("work"), busy | waiting, "5m", 10, tmp_path)  # 6 compute, 4 wait: KEDA asks for 10 / 0.8
    evaluate(query("work"), {'up{job="hairmesh-edge"}': "0x20"}, "5m", None, tmp_path)
    trigger = scaling()["triggers"][0]["metadata"]
    assert (trigger["threshold"], trigger["ignoreNullValues"]) == ("0.8", "false")  # no answer: an error, not 0


def test_an_outage_is_no_lack_of_work(tmp_path: Path) -> None:
    """A dependency of all is down: calls are refused at once, none computes, and the rush comes when it is back."""
    idle = {
        f'{name}{{job="hairmesh-edge",edge="a"}}': "0x20" for name in ("hairmesh_slots_busy", "hairmesh_queue_waiting")
    }

    def workers(*online: int) -> dict[str, str]:
        pool = 'hairmesh_pool_worker_online{{job="hairmesh-edge",edge="{}",worker="{}"}}'
        return {pool.format(edge, number): f"{each}x20" for edge in "ab" for number, each in enumerate(online)}

    evaluate(query("work"), idle | workers(1, 1, 1, 1), "5m", 0, tmp_path)
    evaluate(query("work"), idle | workers(0, 0, 1, 1), "5m", 0, tmp_path)  # as after the number was doubled
    evaluate(query("work"), idle | workers(0, 0, 0, 1), "5m", None, tmp_path)
    evaluate(query("work"), idle | workers(0, 0, 0, 0), "5m", None, tmp_path)


def test_queue_time_is_zero_without_calls_and_scales_before_people_are_told(tmp_path: Path) -> None:
    def buckets(upto_4: str, upto_8: str, kind: str = "fast") -> dict[str, str]:
        name = f'hairmesh_queue_wait_seconds_bucket{{job="hairmesh-edge",edge="a",class="{kind}",le='
        return {f'{name}"4"}}': upto_4, f'{name}"8"}}': upto_8, f'{name}"+Inf"}}': upto_8}

    evaluate(query("queue-time"), buckets("0x20", "0+10x20"), "5m", 7.8, tmp_path)
    evaluate(query("queue-time"), buckets("5x20", "5x20"), "5m", 0, tmp_path)
    evaluate(query("queue-time"), buckets("0x20", "0+10x20", "slow"), "5m", 0, tmp_path)
    threshold_s = float(scaling()["triggers"][1]["metadata"]["threshold"])
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "hairmesh.rules.yml").read_text())
    alert = next(
        rule for group in rules["groups"] for rule in group["rules"] if rule.get("alert") == "HairMeshQueueLong"
    )
    assert threshold_s < float(alert["expr"].split("> ")[1].split()[0])


def test_prometheus_finds_the_pods_and_gives_them_the_names_that_rules_use(tmp_path: Path) -> None:
    scraping = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    jobs = {job["job_name"]: job for job in scraping["scrape_configs"]}
    on_one_machine = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    assert set(jobs) == {job["job_name"] for job in on_one_machine["scrape_configs"]}
    picked = {
        "hairmesh-edge": ("edge", "metrics"),
        "hairmesh-monitor": ("edge", "http"),
        "hairmesh-worker": ("worker", "metrics"),
    }
    for job, (part, port) in picked.items():
        by_component, by_port = jobs[job]["relabel_configs"][:2]
        assert by_component["source_labels"] == ["__meta_kubernetes_pod_label_app_kubernetes_io_component"]
        assert (by_component["regex"], by_port["regex"]) == (part, port)
        assert port in ports("cpu", part)
    for job in ("hairmesh-edge", "hairmesh-monitor"):
        assert "edge" in {rule.get("target_label") for rule in jobs[job]["relabel_configs"]}

    # Debian's promtool is built without Kubernetes: it reads everything but how pods are found.
    for each in scraping["scrape_configs"]:
        assert each.pop("kubernetes_sd_configs") == [{"role": "pod", "namespaces": {"names": ["hairmesh"]}}]
        each["static_configs"] = [{"targets": ["10.0.0.1:1"]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(scraping))
    done = subprocess.run(
        [program("promtool"), "check", "config", str(tmp_path / "prometheus.yml")], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
