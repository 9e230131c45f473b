//! Parameters of a flash device.

use crate::{Error, fields::Fields};

/// Largest part of a map: the one of a drive of 4 TiB.
const MOST_MAP_BYTES: u64 = 4 << 30;

/// Parameters of a flash device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flash {
    pub(super) controller: Controller,
    pub(super) nand: Nand,
    pub(super) units: Units,
}

/// Parameters of queue, interface and write buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Controller {
    pub(super) queue_depth: u32,
    pub(super) is_flush_queued: bool,
    pub(super) interface_bytes_per_s: u64,
    pub(super) command_ns: u64,
    pub(super) write_command_ns: u64,
    pub(super) read_ns: u64,
    pub(super) write_ns: u64,
    pub(super) discard_ns: u64,
    pub(super) flush_ns: u64,
    pub(super) buffer_bytes: u64,
    pub(super) is_power_loss_protected: bool,
    pub(super) map_bytes: u64,
}

/// Parameters of channels and dies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nand {
    pub(super) channels: u32,
    pub(super) dies_per_channel: u32,
    pub(super) channel_bytes_per_s: u64,
    pub(super) page_bytes: u64,
    pub(super) page_read_ns: u64,
    pub(super) program_bytes: u64,
    pub(super) program_ns: u64,
    pub(super) block_bytes: u64,
    pub(super) erase_ns: u64,
    pub(super) slc: Slc,
}

/// Parameters of the SLC cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slc {
    pub(super) bytes: u64,
    pub(super) program_ns: u64,
    pub(super) fold_bytes_per_s: u64,
}

/// Parameters of the allocation units of cards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Units {
    pub(super) unit_bytes: u64,
    pub(super) open_units: u32,
    pub(super) close_ns: u64,
    pub(super) out_of_order_ns: u64,
}

impl Flash {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Flash, Error> {
        let model = Flash {
            controller: Controller::read(fields)?,
            nand: Nand::read(fields)?,
            units: Units::read(fields)?,
        };
        if model.nand.slc.bytes > 0 && model.nand.slc.program_ns == 0 {
            let what = "is missing; give the time of a program in the cache that slc_bytes sets";
            return Err(fields.wrong("slc_program_us", what));
        }
        if model.controller.map_bytes > MOST_MAP_BYTES {
            let what = "is above 4 GiB; leave it out if the whole map is in memory";
            return Err(fields.wrong("map_bytes", what));
        }
        if model.units.open_units > 0 && model.units.unit_bytes < 4096 {
            let what = "is below 4096; give the size of the units that open_units counts";
            return Err(fields.wrong("unit_bytes", what));
        }
        Ok(model)
    }
}

impl Controller {
    fn read(fields: &mut Fields<'_>) -> Result<Controller, Error> {
        Ok(Controller {
            queue_depth: fields.count(
                "queue_depth",
                1,
                1..=65_536,
                "commands that the device accepts at once",
            )?,
            is_flush_queued: fields.flag(
                "queued_flush",
                false,
                "true: other commands run during a flush (NVMe); false: it runs alone (SATA)",
            )?,
            interface_bytes_per_s: fields.bytes(
                "interface_bytes_per_s",
                None,
                100_000,
                "bytes that the interface moves in a second",
            )?,
            command_ns: fields.optional_us(
                "command_us",
                "controller microseconds per command, one command at a time",
            )?,
            write_command_ns: fields.optional_us(
                "write_command_us",
                "the same per write, if that is another; 0: as command_us",
            )?,
            read_ns: fields.optional_us(
                "read_us",
                "microseconds per read in addition to controller, NAND, channel and interface",
            )?,
            write_ns: fields.optional_us(
                "write_us",
                "microseconds per write in addition to controller, interface and waiting for room",
            )?,
            discard_ns: fields.optional_us("discard_us", "microseconds that a discard takes")?,
            flush_ns: fields.optional_us(
                "flush_us",
                "microseconds of a flush in addition to programming what the buffer holds",
            )?,
            buffer_bytes: fields.optional_bytes(
                "buffer_bytes",
                "bytes of writes that complete before they are programmed; 0: no write buffer",
            )?,
            is_power_loss_protected: fields.flag(
                "power_loss_protection",
                false,
                "capacitors protect the buffer: flush and FUA do not wait for programming",
            )?,
            map_bytes: fields.optional_bytes(
                "map_bytes",
                "memory for the map, 4 bytes for each 4 KiB; reads of other places read a page of \
                 the map first; 0: the whole map is in memory",
            )?,
        })
    }
}

impl Nand {
    fn read(fields: &mut Fields<'_>) -> Result<Nand, Error> {
        Ok(Nand {
            channels: fields.count("channels", 1, 1..=256, "channels")?,
            dies_per_channel: fields.count(
                "dies_per_channel",
                1,
                1..=256,
                "dies of a channel that read or program side by side",
            )?,
            channel_bytes_per_s: fields.bytes(
                "channel_bytes_per_s",
                None,
                100_000,
                "bytes that a channel moves in a second",
            )?,
            page_bytes: fields.bytes(
                "page_bytes",
                None,
                512,
                "bytes that a die reads at once; neighbouring pages are on different dies",
            )?,
            page_read_ns: fields.us("page_read_us", "microseconds to read a page (tR)")?,
            program_bytes: fields.bytes(
                "program_bytes",
                None,
                512,
                "bytes that a die programs at once: page × planes × bits of a cell",
            )?,
            program_ns: fields.us(
                "program_us",
                "microseconds to program program_bytes (tPROG)",
            )?,
            block_bytes: fields.bytes(
                "block_bytes",
                Some(1 << 20),
                512,
                "bytes that a die erases at once",
            )?,
            erase_ns: fields
                .optional_us("erase_us", "microseconds to erase block_bytes (tBERS)")?,
            slc: Slc::read(fields)?,
        })
    }

    pub(super) fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }
}

impl Slc {
    fn read(fields: &mut Fields<'_>) -> Result<Slc, Error> {
        Ok(Slc {
            bytes: fields.optional_bytes(
                "slc_bytes",
                "bytes of the cache of SLC, which is programmed faster; 0: none",
            )?,
            program_ns: fields.optional_us(
                "slc_program_us",
                "microseconds to program program_bytes in the cache; program_us holds once it is \
                 full",
            )?,
            fold_bytes_per_s: fields.optional_bytes(
                "slc_fold_bytes_per_s",
                "bytes that an idle device moves out of the cache in a second; 0: never",
            )?,
        })
    }
}

impl Units {
    fn read(fields: &mut Fields<'_>) -> Result<Units, Error> {
        Ok(Units {
            unit_bytes: fields.optional_bytes(
                "unit_bytes",
                "allocation unit of a card, in which it writes in ascending order",
            )?,
            open_units: fields.count(
                "open_units",
                0,
                0..=256,
                "units that a card can continue; 0: all",
            )?,
            close_ns: fields.optional_us(
                "unit_close_us",
                "microseconds to close a unit if all of it must be copied; less in proportion to \
                 the part already written",
            )?,
            out_of_order_ns: fields.optional_us(
                "out_of_order_us",
                "extra microseconds of a write that does not continue its open unit",
            )?,
        })
    }
}
