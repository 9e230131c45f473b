//! Plays a trace in MQSim's format on the page map, so that the two can be compared:
//! `play_trace FILE LOGICAL_UNITS BLOCKS UNITS_PER_BLOCK UNIT_BYTES`. `benches/mqsim.py` runs it.
//! Lines are `time device sector sectors operation`, operation 0 a write; reads change nothing.

use fscost_ssd::{Geometry, NoCharges, PageMap, PageMapOptions, Translation, Write};
use std::error::Error;
use std::io::{BufRead, BufReader};

const SECTOR_BYTES: u32 = 512;
const BATCH: usize = 4096;

#[allow(clippy::print_stdout)] // the result
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("the trace is missing")?;
    let mut number = |name: &str| -> Result<u32, Box<dyn Error>> {
        let text = arguments.next().ok_or(format!("{name} is missing"))?;
        Ok(text.parse()?)
    };
    let geometry = Geometry {
        logical_units: number("LOGICAL_UNITS")?,
        blocks: number("BLOCKS")?,
        units_per_block: number("UNITS_PER_BLOCK")?,
        units_per_page: 1,
        unit_bytes: number("UNIT_BYTES")?,
    };
    let unit_sectors = geometry.unit_bytes / SECTOR_BYTES;
    let mut device = PageMap::new(geometry, PageMapOptions::default(), NoCharges)?;
    let mut batch = Vec::with_capacity(BATCH);
    for line in BufReader::new(std::fs::File::open(&file)?).lines() {
        let line = line?;
        let mut fields = line.split(' ').skip(2);
        let mut field = || -> Result<u32, Box<dyn Error>> {
            let text = fields
                .next()
                .ok_or(format!("{line:?} has not five fields"))?;
            Ok(text.parse()?)
        };
        let (sector, sectors, operation) = (field()?, field()?, field()?);
        if operation != 0 {
            continue;
        }
        let (first, end) = (
            sector / unit_sectors,
            (sector + sectors).div_ceil(unit_sectors),
        );
        if end > geometry.logical_units {
            return Err(format!("{line:?} ends beyond the device").into());
        }
        batch.push(Write {
            first,
            count: end - first,
            tag: 0,
            stream: 0,
        });
        if batch.len() == BATCH {
            device.write_all(&batch);
            batch.clear();
        }
    }
    device.write_all(&batch);
    let counters = device.counters();
    println!(
        "{} units of the host, {} units programmed",
        counters.host_units,
        counters.programmed_units()
    );
    Ok(())
}
