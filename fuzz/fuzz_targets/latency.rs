#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fscost_fuzz::latency(input));
