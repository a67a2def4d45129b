"""The edge's configuration file: every name, default and unit, checked before anything starts.

A file that is wrong anywhere is refused whole, with the key's name and the reason; what a key that holds a secret says
is never repeated, so that a password stays out of logs. What concerns the pool and its channels is defined and checked
there: `edge.pool.config`, `edge.upstream.channel`.

`whole` is the file, with a section each in `access`, `pictures`, `local` and `observed`, of the kinds of values in
`values`; `file` reads it. Everybody else imports from here.
"""

from edge.settings.access import Console, Docs, PublicKey, RateLimit, Tls
from edge.settings.file import ConfigError, check_tls_files, parse, read
from edge.settings.local import Features, LocalVision
from edge.settings.observed import Metrics, RequestLogFile, Tracing
from edge.settings.pictures import Limits, Static
from edge.settings.whole import Settings

__all__ = [
    "ConfigError",
    "Console",
    "Docs",
    "Features",
    "Limits",
    "LocalVision",
    "Metrics",
    "PublicKey",
    "RateLimit",
    "RequestLogFile",
    "Settings",
    "Static",
    "Tls",
    "Tracing",
    "check_tls_files",
    "parse",
    "read",
]
