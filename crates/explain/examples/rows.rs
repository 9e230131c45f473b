//! Prints every row of a recording, and every mark (its name in the place of a path),
//! tab-separated, for tests: `rows RECORDING`.

#![allow(clippy::unwrap_used)]

use fscost_explain::explain;
use fscost_recording::{Op, Recording};
use std::io::Write as _;

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let recording = Recording::open(path.as_ref()).unwrap();
    let explained = explain(&recording).unwrap();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    writeln!(
        out,
        "event\tdisk\toffset\tlength\tstructure\thome\thome_offset\tcauses\tinode\ttransaction\tpath"
    )
    .unwrap();
    let mut event_number = 0;
    recording
        .for_each_frame(true, |_, frame| {
            for event in &frame.events {
                if event.op == Op::Mark {
                    let name = frame.mark_of(event)?.name;
                    writeln!(out, "{event_number}\t0\t0\t0\tmark\t\t\t\t0\t\t{name}").unwrap();
                }
                event_number += 1;
            }
            Ok(true)
        })
        .unwrap();
    for row in &explained.rows {
        writeln!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            row.event,
            row.disk,
            row.offset,
            row.length,
            row.structure.name(),
            row.home.map_or("", |home| home.name()),
            row.home_offset.map_or(String::new(), |o| o.to_string()),
            row.causes,
            row.inode,
            row.transaction.map_or(String::new(), |t| t.to_string()),
            row.path.map_or("", |path| explained.paths.text(path)),
        )
        .unwrap();
    }
}
