//! Tests that no input can do harm in any format. Valid lines are cut, mixed and altered. Each
//! result must be a request within bounds, another valid line, or a flaw with a reason. The fuzzer
//! explores more inputs, but this test runs with every test run.

use std::hash::Hasher;

use bywash_units::TimeSpan;
use siphasher::sip::SipHasher13;

use super::{DAY, Flaw, Format, LATEST, LONGEST, Line, Logged, Parser};

const APACHE: &str = r#"%a %X %t %{end:msec}t "%r" %>s %b %D %{%F %T %z}t %U%q "%{User-Agent}i""#;

/// Returns examples: each format with valid lines of it, including its directives.
fn examples() -> Vec<(Format, Vec<&'static str>)> {
    let of = |name: &str, lines: &[&'static str]| (name.parse().unwrap(), lines.to_vec());
    vec![
        of(
            "usual",
            &[
                r#"{"class":"main","client":"127.0.0.1","method":"GET","outcome":"served","queue_wait_us":2000,"service_us":3000,"session":null,"status":200,"target":"/a","time":1700000000010}"#,
                r#"::1 - - [14/Nov/2023:22:13:20 +0000] "GET /a\x22 HTTP/1.1" 200 9 "-" "x" rt=0.500 urt=0.100, 0.2"#,
            ],
        ),
        of(
            APACHE,
            &[
                r#"::1 + [14/Nov/2023:22:13:20 +0000] 1700000000500 "GET /a\x22 HTTP/1.1" 200 - 2500 2023-11-14 22:13:20 +0000 /a"?b "x\"y""#,
            ],
        ),
        of(
            "nginx",
            &[
                r#"{"msec":"1700000000.500","remote_addr":"::1","request":"GET /a?b=\"c\" HTTP/1.1","status":"200","request_time":"0.300","upstream_response_time":"0.100, 0.050","body_bytes_sent":"9","http_user_agent":"x"}"#,
            ],
        ),
        of(
            "haproxy",
            &[
                r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/20/30/69/+209 200 +2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /a#22 HTTP/1.1""#,
            ],
        ),
        of(
            "caddy",
            &[
                r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","request":{"remote_ip":"::1","method":"GET","uri":"/a?b","headers":{"User-Agent":["curl"]}},"duration":0.5241024,"size":10900,"status":200}"#,
            ],
        ),
        of(
            "envoy",
            &[
                r#"[2016-04-15T20:17:00.310Z] "POST /a?b HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "x" "cc21d9b0" "locations" "tcp://10.0.2.1:80""#,
                r#"{"start_time":"2016-04-15T20:17:00.310Z","method":"POST","path":"/a?b","response_code":204,"response_flags":"DC","bytes_sent":0,"duration":226,"upstream_service_time":"100","downstream_remote_address":"[::1]:80"}"#,
            ],
        ),
        of(
            "w3c",
            &[
                "#Software: Microsoft Internet Information Services 10.0",
                "#Fields: date time cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent) sc-status sc-bytes time-taken",
                "2023-11-14 22:13:20 GET /a b=1 203.0.113.9 Mozilla/5.0+(X11) 200 5120 250",
            ],
        ),
    ]
}

/// A generator of pseudo-random numbers, which are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        let mut hasher = SipHasher13::new();
        hasher.write_u64(self.0);
        self.0 += 1;
        (hasher.finish() % end.max(1) as u64) as usize
    }
}

/// The texts with special meaning in some format, which the test inserts into lines.
const SPICE: &[&str] = &[
    "\"",
    "\\",
    "\\\"",
    "\\x",
    "\\x41",
    "#22",
    " ",
    "",
    "-",
    "[",
    "]",
    "{",
    "}",
    "\u{9b}2J",
    "é",
    "\0",
    "\t",
    "99999999999999999999",
    "-1",
    "1e999",
    ".",
    ",",
    ":",
    "/",
    "%",
    "null",
    "\\u001b[2J",
    "\\ud800",
    "+",
];

fn changed(line: &[u8], other: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = line.to_vec();
    for _ in 0..=draw.below(3) {
        let at = draw.below(bytes.len() + 1);
        match draw.below(5) {
            0 => bytes.truncate(at),
            1 => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[draw.below(other.len() + 1)..]);
            }
            2 if at < bytes.len() => bytes[at] ^= 1 << draw.below(8),
            3 => drop(bytes.splice(at..at, SPICE[draw.below(SPICE.len())].bytes())),
            _ => {
                let end = (at + draw.below(9)).min(bytes.len());
                drop(bytes.splice(at..end, SPICE[draw.below(SPICE.len())].bytes()));
            }
        }
    }
    bytes
}

fn assert_bounded(logged: &Logged<'_>) {
    assert!(
        logged.began >= TimeSpan::from_secs(631_152_000 - 86_400) && logged.began <= LATEST + DAY
    );
    assert!(logged.grain <= TimeSpan::from_secs(1));
    let longest = DAY + DAY;
    assert!(logged.waited.unwrap_or_default() <= longest, "{logged:?}");
    assert!(logged.service.unwrap_or_default() <= longest, "{logged:?}");
    assert!(logged.method.len() + logged.target.len() <= 6 * LONGEST);
    assert!(!logged.method.contains(char::is_control) && !logged.target.contains(char::is_control));
    assert!(!logged.target.is_empty());
}

fn assert_told(flaw: &Flaw) {
    let words = flaw.to_string();
    assert!(!words.is_empty() && words.len() < 600 && !words.contains(char::is_control), "{words}");
}

#[test]
fn every_example_is_a_line_of_its_format() {
    for (format, lines) in examples() {
        let mut parser = Parser::new(format);
        for line in lines {
            let parsed = parser.parse(line.as_bytes());
            assert!(
                matches!(parsed, Ok(Line::Request(_) | Line::Metadata)),
                "{parsed:?} of {line}"
            );
        }
    }
}

#[test]
fn no_bytes_do_more_than_be_a_flaw() {
    let examples = examples();
    let all: Vec<&[u8]> =
        examples.iter().flat_map(|(_, lines)| lines).map(|line| line.as_bytes()).collect();
    let mut draw = Draw(0);
    let (mut requests, mut flaws) = (0, 0);
    for (format, lines) in &examples {
        let mut parser = Parser::new(format.clone());
        for round in 0..4_000 {
            // Start with a new parser now and then, because an altered directive affects all lines
            // that follow.
            if round % 50 == 0 {
                parser = Parser::new(format.clone());
                for line in lines {
                    drop(parser.parse(line.as_bytes()));
                }
            }
            let other = all[draw.below(all.len())];
            let line = changed(lines[draw.below(lines.len())].as_bytes(), other, &mut draw);
            match parser.parse(&line) {
                Ok(Line::Request(logged)) => {
                    assert_bounded(&logged);
                    requests += 1;
                }
                Ok(Line::NoRequest | Line::Elsewhere | Line::Metadata) => {}
                Err(flaw) => {
                    assert_told(&flaw);
                    flaws += 1;
                }
            }
        }
    }
    assert!(requests > 1_000 && flaws > 1_000, "{requests} requests, {flaws} flaws");
}

#[test]
fn lines_of_other_formats_are_none_of_this() {
    let examples = examples();
    for (format, _) in &examples {
        for (other, lines) in examples.iter().filter(|(other, _)| other != format) {
            let mut parser = Parser::new(format.clone());
            for line in lines.iter().filter(|line| !line.starts_with('#')) {
                let parsed = parser.parse(line.as_bytes());
                assert!(parsed.is_err(), "{parsed:?} of {other} as {format}");
            }
        }
    }
}

#[test]
fn no_format_text_does_more_than_be_refused() {
    let mut draw = Draw(1 << 32);
    let other = "%{%Y-%m-%dT%H:%M:%S%z}t %!200,304{Referer}i %{end:usec_frac}t %^FU %{c}a";
    let mut read = 0;
    for _ in 0..4_000 {
        let bytes = changed(APACHE.as_bytes(), other.as_bytes(), &mut draw);
        let Ok(text) = std::str::from_utf8(&bytes) else { continue };
        match text.parse::<Format>() {
            Ok(format) => {
                read += 1;
                drop(Parser::new(format).parse(examples()[1].1[0].as_bytes()));
            }
            Err(flaw) => assert!(!flaw.to_string().contains(char::is_control)),
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn a_format_is_told_by_the_first_lines() {
    for (format, lines) in examples() {
        let whole = lines.join("\r\n");
        // Garbage before the lines and a cut last line do not change the result.
        let text = format!("\u{1}\n{whole}\n{}", &lines[0][..20]);
        match &format {
            Format::Apache(_) => {}
            Format::Usual
            | Format::Nginx
            | Format::HaProxy
            | Format::Caddy
            | Format::Envoy
            | Format::W3c => {
                assert_eq!(Format::detect(text.as_bytes()), Some(format.clone()), "{format}");
                assert_eq!(format.to_string().parse(), Ok(format));
            }
        }
    }
    for nothing in ["", "\n", "no log\nat all\n", "{}\n{}\n", "[]\n"] {
        assert_eq!(Format::detect(nothing.as_bytes()), None, "{nothing:?}");
    }
    assert!("apache".parse::<Format>().is_err());
}
