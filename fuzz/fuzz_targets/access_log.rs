//! Checks that every line of an access log is parsed as a request within bounds, as a line without
//! a request, or as a flaw with a reason. Also checks that lines do not depend on the pieces in
//! which they are read.
#![no_main]

use std::io::BufReader;

use bywash_sense::access_log::{End, Flaw, Format, Line, Lines, Logged, Parser};
use bywash_units::TimeSpan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = lines(bytes, 4096);
    assert_eq!(whole, lines(bytes, 1));
    let lines: Vec<&[u8]> = whole.iter().flatten().map(Vec::as_slice).collect();
    let named = ["usual", "nginx", "haproxy", "caddy", "envoy", "w3c"];
    let named = named.map(|name| name.parse().expect("these are its names"));
    for format in named {
        read(format, &lines);
    }
    // The first line may name the format of the other lines.
    let written = lines.first().and_then(|line| std::str::from_utf8(line).ok());
    if let Some(Ok(format)) = written.map(str::parse) {
        read(format, &lines[1..]);
    }
    let _told = Format::detect(bytes);
});

fn read(format: Format, lines: &[&[u8]]) {
    let is_usual = format == Format::Usual;
    let mut parser = Parser::new(format);
    for line in lines {
        match parser.parse(line) {
            Ok(Line::Request(logged)) => {
                assert_bounded(&logged);
                let is_ours = is_usual && logged.grain < TimeSpan::from_secs(1);
                match logged.end {
                    // A status 429 or 503 counts as a refusal. Only bywash's own log tells which
                    // component answered with that status.
                    End::Answered(429 | 503) | End::Late(_) => assert!(is_ours),
                    End::Answered(_) | End::Refused | End::Left | End::Failed | End::Untold => {}
                }
                assert_eq!(logged.request_hash(), logged.clone().request_hash());
            }
            Ok(Line::NoRequest | Line::Elsewhere | Line::Metadata) => {}
            Err(flaw) => {
                let words = flaw.to_string();
                assert!(!words.is_empty() && !words.contains(char::is_control));
            }
        }
    }
}

fn assert_bounded(logged: &Logged<'_>) {
    let day = TimeSpan::from_secs(86_400);
    let took = logged.waited.unwrap_or_default() + logged.service.unwrap_or_default();
    assert!(took <= day + day && logged.grain <= TimeSpan::from_secs(1));
    assert!(logged.began >= TimeSpan::from_secs(631_152_000 - 86_400));
    assert!(logged.began < TimeSpan::from_secs(7_258_118_400));
    assert!(!logged.method.contains(char::is_control) && !logged.target.contains(char::is_control));
}

fn lines(bytes: &[u8], piece: usize) -> Vec<Result<Vec<u8>, Flaw>> {
    let mut lines = Lines::new(BufReader::with_capacity(piece, bytes));
    let mut all = Vec::new();
    while let Some(line) = lines.next_line().expect("memory can be read") {
        all.push(line.map(<[u8]>::to_vec));
    }
    assert_eq!(lines.number(), all.len() as u64);
    all
}
