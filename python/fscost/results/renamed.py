"""Metrics that had other names in older versions of fscost."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from fscost.results.manifest import Manifest
from fscost.results.table import digest

_RENAMED = {
    "device_fresh_write_bytes": "first_write_bytes",
    "names_write_bytes": "directory_entries_write_bytes",
    "size_or_map_write_bytes": "size_or_extents_write_bytes",
    "address_table_write_bytes": "nat_write_bytes",
    "segment_table_write_bytes": "sit_write_bytes",
}
_RENAMED_OF_NILFS2 = _RENAMED | {
    "address_table_write_bytes": "dat_write_bytes",
    "segment_table_write_bytes": "sufile_write_bytes",
}


def with_present_names(manifest: Manifest, samples: pa.Table) -> tuple[Manifest, pa.Table]:
    """Return the run with the present names of its metrics, and the digests of its cells
    adjusted."""
    if not pc.any(pc.is_in(samples["metric"], pa.array(_RENAMED, pa.string()))).as_py():
        return manifest, samples
    rows = zip(samples["profile"].to_pylist(), samples["metric"].to_pylist(), strict=True)
    metrics = [
        (_RENAMED_OF_NILFS2 if profile.startswith("nilfs2") else _RENAMED).get(metric, metric)
        for profile, metric in rows
    ]
    field = samples.schema.get_field_index("metric")
    samples = samples.set_column(field, samples.schema.field(field), [metrics])
    cells = [
        replace(cell, samples_sha256=digest(samples.filter(pc.equal(samples["cell"], cell.cell))))
        if cell.samples_sha256
        else cell
        for cell in manifest.cells
    ]
    return replace(manifest, cells=cells), samples
