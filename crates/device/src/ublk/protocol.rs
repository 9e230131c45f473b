//! The part of `include/uapi/linux/ublk_cmd.h` that is used. Since Linux 6.5 (`UBLK_F_USER_COPY`).

use rustix::ioctl::{Opcode, opcode};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Ioctl type that encodes all commands.
const GROUP: u8 = b'u';

/// Control commands, sent to `/dev/ublk-control`.
pub const GET_DEV_INFO: Opcode = opcode::read::<CtrlCmd>(GROUP, 0x02);
pub const ADD_DEV: Opcode = opcode::read_write::<CtrlCmd>(GROUP, 0x04);
pub const DEL_DEV: Opcode = opcode::read_write::<CtrlCmd>(GROUP, 0x05);
pub const START_DEV: Opcode = opcode::read_write::<CtrlCmd>(GROUP, 0x06);
pub const STOP_DEV: Opcode = opcode::read_write::<CtrlCmd>(GROUP, 0x07);
pub const SET_PARAMS: Opcode = opcode::read_write::<CtrlCmd>(GROUP, 0x08);
pub const GET_FEATURES: Opcode = opcode::read::<CtrlCmd>(GROUP, 0x13);
/// Request commands, sent to `/dev/ublkcN`.
pub const FETCH_REQ: Opcode = opcode::read_write::<IoCmd>(GROUP, 0x20);
pub const COMMIT_AND_FETCH_REQ: Opcode = opcode::read_write::<IoCmd>(GROUP, 0x21);

pub const F_CMD_IOCTL_ENCODE: u64 = 1 << 6;
pub const F_USER_COPY: u64 = 1 << 7;

/// Placeholders for no queue, and for any free device.
pub const NO_QUEUE: u16 = u16::MAX;
pub const ANY_DEVICE: u32 = u32::MAX;

pub const ATTR_VOLATILE_CACHE: u32 = 1 << 2;
pub const ATTR_FUA: u32 = 1 << 3;
pub const PARAM_BASIC: u32 = 1;
pub const PARAM_DISCARD: u32 = 1 << 1;

pub const OP_READ: u32 = 0;
pub const OP_WRITE: u32 = 1;
pub const OP_FLUSH: u32 = 2;
pub const OP_DISCARD: u32 = 3;
pub const OP_WRITE_ZEROES: u32 = 5;
/// Mask of the operation in `op_flags`.
pub const OP_MASK: u32 = 0xff;
pub const IO_FUA: u32 = 1 << 13;

/// Returns the offset in the character device of the content of request `tag` of queue 0.
pub const fn content_offset(tag: u16) -> u64 {
    const CONTENTS: u64 = 0x8000_0000;
    const TAG_SHIFT: u32 = 25;
    CONTENTS + ((tag as u64) << TAG_SHIFT)
}

/// `struct ublksrv_ctrl_cmd`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy, IntoBytes, Immutable)]
pub struct CtrlCmd {
    pub dev_id: u32,
    pub queue_id: u16,
    pub len: u16,
    pub addr: u64,
    pub data: u64,
    pub dev_path_len: u16,
    pub pad: u16,
    pub reserved: u32,
}

/// `struct ublksrv_ctrl_dev_info`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct DevInfo {
    pub nr_hw_queues: u16,
    pub queue_depth: u16,
    pub state: u16,
    pub pad0: u16,
    pub max_io_buf_bytes: u32,
    pub dev_id: u32,
    pub ublksrv_pid: i32,
    pub pad1: u32,
    pub flags: u64,
    /// Private flags that the driver stores for the server.
    pub ublksrv_flags: u64,
    pub owner_uid: u32,
    pub owner_gid: u32,
    pub reserved1: u64,
    pub reserved2: u64,
}

/// `struct ublksrv_io_cmd`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy, IntoBytes, Immutable)]
pub struct IoCmd {
    pub q_id: u16,
    pub tag: u16,
    pub result: i32,
    pub addr: u64,
}

/// `struct ublksrv_io_desc`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct IoDesc {
    pub op_flags: u32,
    pub nr_sectors: u32,
    pub start_sector: u64,
    pub addr: u64,
}

/// First part of `struct ublk_params`: the kernel reads `len` bytes.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct Params {
    pub len: u32,
    pub types: u32,
    pub basic: ParamBasic,
    pub discard: ParamDiscard,
}

/// `struct ublk_param_basic`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct ParamBasic {
    pub attrs: u32,
    pub logical_bs_shift: u8,
    pub physical_bs_shift: u8,
    pub io_opt_shift: u8,
    pub io_min_shift: u8,
    pub max_sectors: u32,
    pub chunk_sectors: u32,
    pub dev_sectors: u64,
    pub virt_boundary_mask: u64,
}

/// `struct ublk_param_discard`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct ParamDiscard {
    pub discard_alignment: u32,
    pub discard_granularity: u32,
    pub max_discard_sectors: u32,
    pub max_write_zeroes_sectors: u32,
    pub max_discard_segments: u16,
    pub reserved0: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks numbers and sizes against those that a C compiler finds in the kernel's header.
    #[test]
    fn encodings_of_the_kernel_s_header() {
        assert_eq!(ADD_DEV, 0xc020_7504);
        assert_eq!(GET_FEATURES, 0x8020_7513);
        assert_eq!(COMMIT_AND_FETCH_REQ, 0xc010_7521);
        assert_eq!(size_of::<CtrlCmd>(), 32);
        assert_eq!(size_of::<DevInfo>(), 64);
        assert_eq!(size_of::<IoDesc>(), 24);
        assert_eq!(std::mem::offset_of!(Params, discard), 40);
        assert_eq!(
            std::mem::offset_of!(Params, discard) + size_of::<ParamDiscard>(),
            60
        );
        assert_eq!(content_offset(3), 0x8000_0000 + 3 * (32 << 20));
    }
}
