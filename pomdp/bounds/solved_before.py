"""Certificates kept on disk by model, criterion, quantity and gap; imports pomdp.certificate, check and cache_folder.

What is found there is checked again before it is used, so a damaged or foreign file costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from pomdp import certificate as certificates
from pomdp.cache_folder import cache_folder
from pomdp.certificate import Certificate, CertificateError
from pomdp.check import check
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.whole_file import write_whole

LARGEST = 64 * 2**20  # bytes of a certificate that is still kept


def find(
    model: POMDP, criterion: Criterion, quantity: str, gap: float, time_limit: float
) -> tuple[Certificate, str, float] | None:
    """(certificate, why its search ended, its seconds) where a stored run answers the question, else None.

    A run that reached the gap does; one that ran out of time does where it had at least `time_limit`.
    """
    folder = _folder(model, criterion, quantity, gap)
    if folder is None or not (folder / "run.json").is_file():
        return None
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        ended, limit, seconds = str(run["ended"]), float(run["time_limit"]), float(run["seconds"])
        if ended != "gap" and limit < time_limit:
            return None
        stored = certificates.read(folder / "certificate.json")
    except (OSError, ValueError, KeyError, TypeError, CertificateError):
        return None
    wanted = None if criterion.discount == model.exact.discount else criterion.discount
    same = (stored.quantity, stored.horizon, stored.discount) == (quantity, criterion.horizon, wanted)
    return (stored, ended, seconds) if same and check(stored, model).valid else None


def store(
    model: POMDP,
    criterion: Criterion,
    made: Certificate,
    gap: float,
    time_limit: float,
    ended: str,
    seconds: float,
) -> None:
    """Keep a certificate; where that cannot be done nothing is kept and nothing is said."""
    folder = _folder(model, criterion, made.quantity, gap)
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        certificates.write(made, folder / "certificate.json")
        if (folder / "certificate.json").stat().st_size > LARGEST:
            (folder / "certificate.json").unlink()
            return
        run = json.dumps({"ended": ended, "time_limit": time_limit, "seconds": seconds})
        write_whole(folder / "run.json", run)
    except OSError:
        return


def _folder(model: POMDP, criterion: Criterion, quantity: str, gap: float) -> Path | None:
    base = cache_folder("solved")
    if base is None:
        return None
    question = f"{solver_hash()} {model.digest} {criterion.text()} {quantity} {gap!r}"
    return base / hashlib.sha256(question.encode()).hexdigest()


@lru_cache
def solver_hash() -> str:
    """Hash of the solver's sources: another solver may reach further, so its question is another one."""
    sha = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        sha.update(file.read_bytes())
    return sha.hexdigest()
