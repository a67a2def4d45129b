"""`hairmesh watch`: the shell around `worker.health.watchdog`. Here are clock, network, lock and restart command."""
