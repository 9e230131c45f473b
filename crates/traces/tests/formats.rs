//! Units, edges and errors of each format. Sample lines are those of the publications.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{File, error_of, read, request, requests_of};
use fscost_traces::{Format, Kind, Request, Trace};

#[test]
fn msr_times_are_filetime_and_offsets_bytes() {
    let text = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                128166372016382155,usr,0,Write,1317441536,8192,1963\n";
    let (requests, disks) = read(&File::new(text).path(), None).unwrap();
    assert_eq!(disks, ["usr_0"]);
    let first = request(
        12_816_637_200_306_162_900,
        Kind::Read,
        7_014_609_920,
        24_576,
    );
    let second = request(12_816_637_201_638_215_500, Kind::Write, 1_317_441_536, 8192);
    assert_eq!(requests, [first, second]);
    // 2185-07-21: the last that fits.
    let last = "184467440737095516,h,1,Write,0,512,0";
    assert_eq!(requests_of(last)[0].time_ns, 18_446_744_073_709_551_600);
    assert_eq!(
        error_of("184467440737095517,h,1,Write,0,512,0", None),
        "trace: line 1: Timestamp is later than the year 2185"
    );
}

#[test]
fn systor17_times_are_seconds_and_blank_types_do_not_count() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
                1456095145.133077000,,,0,899056122368,512\n\
                1456095145.999999999,0.000100000,W,4,4096,512\n";
    let (requests, disks) = read(&File::new(text).path(), None).unwrap();
    assert_eq!(disks, ["0", "4"]);
    let write = Request {
        disk: 1,
        ..request(1_456_095_145_999_999_999, Kind::Write, 4096, 512)
    };
    let read = request(
        1_456_095_145_133_076_000,
        Kind::Read,
        899_056_122_368,
        131_072,
    );
    assert_eq!(requests, [read, write]);
}

#[test]
fn alibaba_times_are_microseconds() {
    let text = "0,R,126703661056,4096,1577808000000046\n1,W,19496058880,77824,1577808000000426\n";
    let (requests, disks) = read(&File::new(text).path(), None).unwrap();
    assert_eq!(disks, ["0", "1"]);
    let first = request(1_577_808_000_000_046_000, Kind::Read, 126_703_661_056, 4096);
    assert_eq!(requests[0], first);
    assert_eq!(requests[1].time_ns - requests[0].time_ns, 380_000);
    let too_late = error_of("0,R,0,4096,18446744073709552", None);
    assert_eq!(
        too_late,
        "trace: line 1: timestamp is later than the year 2554"
    );
}

#[test]
fn tencent_times_are_seconds_and_offsets_sectors() {
    let text = "1538323199,105352008,584,1,1576\r\n1538323200,12910952,128,0,1063\r\n";
    let (requests, disks) = read(&File::new(text).path(), None).unwrap();
    assert_eq!(disks, ["1576", "1063"]);
    let first = request(
        1_538_323_199_000_000_000,
        Kind::Write,
        105_352_008 * 512,
        584 * 512,
    );
    assert_eq!(requests[0], first);
    assert_eq!(requests[1].kind, Kind::Read);
    let beyond = error_of("1538323199,36028797018963967,2,1,0", None);
    assert_eq!(beyond, "trace: line 1: the request ends beyond 2^64 bytes");
}

#[test]
fn spc_blocks_are_512_bytes_and_sizes_bytes() {
    // The first lines of Financial1.
    let text = "0,303567,3584,w,0.000000\n1,55590,3072,W,0.000001\n0,303574,3584,r,0.026214\n";
    let (requests, disks) = read(&File::new(text).path(), None).unwrap();
    assert_eq!(disks, ["0", "1"]);
    assert_eq!(requests[0], request(0, Kind::Write, 303_567 * 512, 3584));
    let last = request(26_214_000, Kind::Read, 303_574 * 512, 3584);
    assert_eq!(requests[2], last);
    assert_eq!(
        error_of("0,1,512,X,0.5", Some(Format::Spc)),
        "trace: line 1: Opcode is 'X', not R or W"
    );
}

#[test]
fn fiu_disks_are_numbers_of_devices() {
    let text = "89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523\n\
         89968195800000 20782 gzip 283193192 8 W 8 1 56f11b711d91a065a2b6458eca924523\n";
    let (requests, disks) = read(&File::new(text).path(), None).unwrap();
    assert_eq!(disks, ["6,0", "8,1"]);
    let first = request(89_968_195_792_462, Kind::Read, 283_193_184 * 512, 4096);
    assert_eq!(requests[0], first);
    assert_eq!(requests[1].kind, Kind::Write);
}

#[test]
fn times_of_disksim_are_milliseconds_and_of_mqsim_nanoseconds() {
    let text = "4.851300 1 524288 16 0\n7 0 8 1 1\n";
    let (requests, disks) = read(&File::new(text).path(), None).unwrap();
    assert_eq!(disks, ["1", "0"]);
    let first = request(4_851_300, Kind::Write, 524_288 * 512, 8192);
    assert_eq!(requests[0], first);
    assert_eq!(
        (requests[1].time_ns, requests[1].kind),
        (7_000_000, Kind::Read)
    );
    // From MQSim's traces/README.md.
    let (requests, _) = read(&File::new("4851300 1 524288 16 0\n").path(), None).unwrap();
    assert_eq!(requests, [first]);
    assert_eq!(
        error_of("1.5 0 8 1 1\n1.5 0 8 1", None),
        "trace: line 2: 4 fields separated by blanks, but the format has 5"
    );
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let line = "0,R,126703661056,4096,1577808000000046\n";
    for text in [
        line.to_owned(),
        format!("device_id,opcode,offset,length,timestamp\n{line}"),
    ] {
        let marked = format!("\u{feff}{text}");
        assert_eq!(requests_of(marked), requests_of(text));
    }
    let error = error_of(format!("{line}\u{feff}{line}"), None);
    assert!(error.starts_with("trace: line 2: device_id is"), "{error}");
}

#[test]
fn fio_waits_of_version_2_are_summed_microseconds() {
    let text = "fio version 2 iolog\n/f add\n/f open\n/f write 0 4096\n/f wait 1500 0\n\
                /f trim 8192 4096\n/f wait 50 0\n/f sync 0 0\n/g read 1 2\n/f close\n";
    let (requests, disks) = read(&File::new(text).path(), None).unwrap();
    assert_eq!(disks, ["/f", "/g"]);
    let of_g = Request {
        disk: 1,
        ..request(1_550_000, Kind::Read, 1, 2)
    };
    let wanted = [
        request(0, Kind::Write, 0, 4096),
        request(1_500_000, Kind::Discard, 8192, 4096),
        request(1_550_000, Kind::Flush, 0, 0),
        of_g,
    ];
    assert_eq!(requests, wanted);
    let text = "fio version 3 iolog\n0 /f add\n5 /f wait 7 0\n";
    assert_eq!(error_of(text, None), "trace: line 3: unknown action 'wait'");
}

const BLKPARSE: &str = "  8,0    3        1     0.000000000   697  ";

#[test]
fn blkparse_counts_each_request_once() {
    let line = |action: &str, rest: &str| format!("{BLKPARSE}{action} {rest} [kjournald x]\n");
    let one = line("Q", "WS 8 + 8") + &line("G", "WS 8 + 8") + &line("I", "WS 8 + 8");
    let write = request(0, Kind::Write, 4096, 4096);
    assert_eq!(requests_of(&one), [write]);
    let completed = line("C", "WS 8 + 8").replace("[kjournald x]", "[0]");
    assert_eq!(requests_of(&completed), [write]);
    let failed = completed.replace("[0]", "[5]");
    assert!(requests_of(&failed).is_empty());
    let all = one.clone() + &line("D", "WS 8 + 8") + &completed;
    assert_eq!(requests_of(&all), [write]);
    // The driver was busy, twice.
    let (issue, requeue) = (line("D", "WS 8 + 8"), line("R", "WS 8 + 8"));
    let busy = [&one, &issue, &requeue, &issue, &requeue, &issue, &completed].map(String::as_str);
    assert_eq!(requests_of(busy.concat()), [write]);
    let again = busy.concat() + &issue;
    assert_eq!(requests_of(again), [write, write]);
}

#[test]
fn a_request_that_is_requeued_before_it_was_issued_counts() {
    let text = |events: &[(&str, u64, u64)]| -> String {
        let line = |&(action, sector, sectors): &(&str, u64, u64)| {
            format!("{BLKPARSE}{action} WS {sector} + {sectors} [0]\n")
        };
        events.iter().map(line).collect()
    };
    let sectors_of = |events: &[(&str, u64, u64)]| -> Vec<(u64, u64)> {
        let requests = requests_of(text(events));
        let place = |each: &Request| (each.offset_bytes / 512, each.length_bytes / 512);
        requests.iter().map(place).collect()
    };
    let (queue, requeue) = (("Q", 1000, 8), ("R", 1000, 8));
    let (issue, complete) = (("D", 1000, 8), ("C", 1000, 8));
    let other = ("D", 9000, 8);
    let write = (1000, 8);
    assert_eq!(
        sectors_of(&[queue, requeue, issue, complete, other]),
        [write, (9000, 8)]
    );
    let again = [
        requeue, requeue, issue, complete, issue, complete, requeue, issue,
    ];
    assert_eq!(sectors_of(&again), [write; 3]);
    // The request fails before it is issued again.
    let failed = text(&[issue, requeue]) + &text(&[complete]).replace("[0]", "[5]");
    assert_eq!(requests_of(failed + &text(&[issue])).len(), 2);
    // Half of the request completes, and the other half is issued again.
    let half = [issue, ("C", 1000, 4), ("R", 1004, 4), ("D", 1004, 4)];
    assert_eq!(sectors_of(&half), [write]);
}

#[test]
fn disks_that_only_complete_are_not_listed() {
    // md and dm have no D.
    let text = format!(
        "{}{BLKPARSE}D WS 8 + 8 [x]\n",
        "  9,0    3        1     0.000000000   697  C WS 8 + 8 [0]\n"
    );
    let (requests, disks) = read(&File::new(text).path(), None).unwrap();
    assert_eq!(disks, ["8,0"]);
    assert_eq!(requests, [request(0, Kind::Write, 4096, 4096)]);
}

#[test]
fn blkparse_operations_flags_and_forms() {
    let one = |rest: &str| requests_of(format!("{BLKPARSE}D {rest}\n"));
    let place = |kind| request(0, kind, 5120, 512);
    assert_eq!(one(" RAM 10 + 1 [x]"), [place(Kind::Read)]);
    assert_eq!(one("  DS 10 + 1 [x]"), [place(Kind::Discard)]);
    assert_eq!(one(" WZS 10 + 1 [x]"), [place(Kind::Zero)]);
    assert_eq!(one("  WS 10 + 1 (    5571) [x]"), [place(Kind::Write)]);
    let fua = Request {
        fua: true,
        ..place(Kind::Write)
    };
    let flush = request(0, Kind::Flush, 0, 0);
    assert_eq!(one(" WFS 10 + 1 [x]"), [fua]);
    assert_eq!(one("FWFSM 10 + 1 [x]"), [flush, fua]);
    assert_eq!(one("  FN [x]"), [flush]);
    assert_eq!(one(" FWS [x]"), [flush]);
    // SCSI commands have a size in bytes and no sector; zones are managed without data.
    assert!(one("   R 36 (12 00 00 00 24 00 ..) [udevd]").is_empty());
    assert!(one("   N 0 [x]").is_empty());
    assert!(one("  ZR 524288 + 0 [x]").is_empty());
}

#[test]
fn blkparse_summaries_are_passed_over_but_other_text_is_not() {
    let event = format!("{BLKPARSE}D W 10 + 1 [x]\n");
    let around = format!(
        "Input file sda.blktrace.0 added\n\n{event}CPU0 (sda):\n Reads Queued: 1, 4KiB\n\nTotal \
        (sda):\n x\n"
    );
    assert_eq!(requests_of(around).len(), 1);
    let error = error_of(format!("{event}\n nonsense\n"), None);
    assert!(
        error.starts_with("trace: line 3: ' nonsense' is not a line of blkparse's"),
        "{error}"
    );
    let error = error_of(format!("{BLKPARSE}D W 10 + x [x]\n"), None);
    assert_eq!(
        error,
        "trace: line 1: the count of sectors is 'x', not an integer of 64 bits"
    );
    let error = error_of(event.replace("0.000000000", "soon"), None);
    assert_eq!(error, "trace: line 1: the time is 'soon', not seconds");
}

#[test]
fn a_log_of_dm_log_writes_has_no_duration() {
    let words = |words: [u64; 4]| -> Vec<u8> {
        let mut sector: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        sector.resize(512, 0);
        sector
    };
    let flush = words([0, 0, 1, 0]);
    let begin = words([0x6a_7366_7773_6872, 1, 3, 512]);
    let file = File::new([begin, flush.repeat(3)].concat());
    let mut trace = Trace::open(&file.path(), None).unwrap();
    assert_eq!(trace.by_ref().filter(|each| each.is_ok()).count(), 3);
    assert_eq!(trace.format(), Format::DmLogWrites);
    assert_eq!(trace.duration_ns(), 0);
}

#[test]
fn version_2_of_blktrace_tells_zeroes_from_writes() {
    let record = |categories: u64| {
        let mut raw = [0; 64];
        raw[..4].copy_from_slice(&0x6561_7408u32.to_le_bytes());
        raw[8..16].copy_from_slice(&77u64.to_le_bytes());
        raw[16..24].copy_from_slice(&10u64.to_le_bytes());
        raw[24..28].copy_from_slice(&512u32.to_le_bytes());
        raw[32..40].copy_from_slice(&(7 | categories << 16).to_le_bytes());
        raw[40..44].copy_from_slice(&(259 << 20 | 3u32).to_le_bytes());
        raw[50..52].copy_from_slice(&5u16.to_le_bytes());
        let mut record = raw.to_vec();
        record.extend(b"extra");
        record
    };
    let (issue, write, zeroes) = (1 << 6, 1 << 1, 1 << 22);
    let bytes = [record(issue | write | zeroes), record(issue | write)].concat();
    let (requests, disks) = read(&File::new(bytes).path(), None).unwrap();
    assert_eq!(disks, ["259,3"]);
    let wanted = [Kind::Zero, Kind::Write].map(|kind| request(77, kind, 5120, 512));
    assert_eq!(requests, wanted);
}

#[test]
fn malformed_lines_are_reported_with_their_number() {
    let good = "0,R,126703661056,4096,1577808000000046\n";
    let cases = [
        ("0,X,1,2,3", "opcode is 'X', not R or W"),
        (
            "0,R,1,2",
            "4 fields separated by commas, but the format has 5",
        ),
        ("0,R,-1,2,3", "offset is '-1', not an integer of 64 bits"),
        ("0,R,1,2.5,3", "length is '2.5', not an integer of 64 bits"),
        (
            "\x07,R,1,2,3",
            "device_id is '\\x07', not an integer of 64 bits",
        ),
        (
            "0,R,18446744073709551615,1,3",
            "the request ends beyond 2^64 bytes",
        ),
    ];
    for (line, cause) in cases {
        let text = format!("{good}\n{good}{line}\n{good}");
        assert_eq!(error_of(text, None), format!("trace: line 4: {cause}"));
    }
    // Other formats' lines under a format that was named.
    let error = error_of(good, Some(Format::Msr));
    assert_eq!(
        error,
        "trace: line 1: 5 fields separated by commas, but the format has 7"
    );
}

#[test]
fn a_named_format_wins_over_the_content() {
    // Both are possible: device 1 read 0 bytes at 7, or second 1.
    let text = "1,0,8,1,7\n";
    assert_eq!(
        requests_of(text),
        [request(1_000_000_000, Kind::Write, 0, 4096)]
    );
    let file = File::new(text);
    assert!(read(&file.path(), Some(Format::Alibaba)).is_err());
    for format in Format::ALL {
        assert_eq!(Format::of_name(format.name()), Some(format));
    }
    assert_eq!(Format::of_name("csv"), None);
}
