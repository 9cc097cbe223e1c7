"""The fields of a job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class JobSpec:
    """Settings of a job, checked."""

    id: str
    needs: tuple = ()


def parse_spec(fields):
    """Checks the fields of a job. Raises `ValueError`."""
    unknown = sorted(set(fields) - {"id", "needs"})
    if unknown:
        raise ValueError(f"unknown field `{unknown[0]}`")
    job_id = fields.get("id")
    if not isinstance(job_id, str) or not job_id:
        raise ValueError("field `id` must be a text that isn't empty")
    return JobSpec(id=job_id, needs=ids(fields, "needs"))


def ids(fields, name):
    value = fields.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"field `{name}` must be a list of job ids")
    return tuple(value)
