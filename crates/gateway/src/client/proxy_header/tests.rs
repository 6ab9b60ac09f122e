use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

/// The length in bytes of the longest accepted version 2 header. The parser waits for no more bytes
/// than that.
const LONGEST: usize = FIXED + LONGEST_BLOCK;

#[track_caller]
fn done(bytes: &[u8], source: Option<&str>) {
    let source = source.map(|address| address.parse().unwrap());
    assert_eq!(parse(bytes), Ok(Parsed::Done { used: bytes.len(), source }));
    // The parser must ignore whatever the client sends after the header.
    let followed = [bytes, b"\r\nPROXY \x16\x03\x01".as_slice()].concat();
    assert_eq!(parse(&followed), Ok(Parsed::Done { used: bytes.len(), source }));
    for length in 0..bytes.len() {
        assert_eq!(parse(&bytes[..length]), Ok(Parsed::More), "{length} of {}", bytes.len());
    }
}

#[test]
fn a_line_names_a_client_of_version_4() {
    done(b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", Some("192.168.0.1:56324"));
    done(b"PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n", Some("0.0.0.0:0"));
}

#[test]
fn a_line_names_a_client_of_version_6() {
    done(b"PROXY TCP6 2001:DB8::1 ::1 1 2\r\n", Some("[2001:db8::1]:1"));
    let longest = "ffff:".repeat(7) + "ffff";
    let line = format!("PROXY TCP6 {longest} {longest} 65535 65535\r\n");
    assert_eq!(line.len(), 104, "section 2.1");
    done(line.as_bytes(), Some(&format!("[{longest}]:65535")));
}

#[test]
fn a_mapped_address_is_the_client_of_version_4() {
    done(b"PROXY TCP6 ::ffff:192.0.2.1 ::1 7 8\r\n", Some("192.0.2.1:7"));
    done(b"PROXY TCP6 ::ffff:c000:201 ::1 7 8\r\n", Some("192.0.2.1:7"));
    let mapped = Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets();
    done(&v2(0x21, 0x21, &[&mapped[..], &[0; 16], &[0, 7, 0, 8]].concat()), Some("192.0.2.1:7"));
}

#[test]
fn an_unknown_line_names_nobody_whatever_follows() {
    done(b"PROXY UNKNOWN\r\n", None);
    done(b"PROXY UNKNOWN \r\n", None);
    done(b"PROXY UNKNOWN ffff::1 \xff\x00 1\r\n", None);
    let line = format!("PROXY UNKNOWN {}\r\n", "f".repeat(107 - 16));
    assert_eq!(line.len(), 107);
    done(line.as_bytes(), None);
}

#[test]
fn a_line_that_is_not_exactly_one_is_refused() {
    for line in [
        "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 56324\r443\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443 \r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443 1\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 56324\r\n",
        "PROXY TCP4  192.168.0.1 192.168.0.11 56324 443\r\n",
        "PROXY TCP4\t192.168.0.1 192.168.0.11 56324 443\r\n",
        "PROXY  TCP4 192.168.0.1 192.168.0.11 56324 443\r\n",
        "PROXY TCP4 192.168.0.01 192.168.0.11 56324 443\r\n",
        "PROXY TCP4 192.168.0.256 192.168.0.11 56324 443\r\n",
        "PROXY TCP4 192.168.1 192.168.0.11 56324 443\r\n",
        "PROXY TCP4 ::1 192.168.0.11 56324 443\r\n",
        "PROXY TCP4 192.168.0.1 ::1 56324 443\r\n",
        "PROXY TCP6 192.168.0.1 192.168.0.11 56324 443\r\n",
        "PROXY TCP6 ::1%eth0 ::1 56324 443\r\n",
        "PROXY TCP6 1::2::3 ::1 56324 443\r\n",
        "PROXY TCP6 [::1] ::1 56324 443\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 056324 443\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 00 443\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 +5 443\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 65536 443\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 5 443x\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 5 \r\n",
        "PROXY UDP4 192.168.0.1 192.168.0.11 5 443\r\n",
        "PROXY tcp4 192.168.0.1 192.168.0.11 5 443\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY TCP4 192.168.0.1 192.168.0.11 5 44\u{663}\r\n",
        "PROXY \r\n",
    ] {
        assert_eq!(parse(line.as_bytes()), Err(Bad::Line), "{line:?}");
    }
}

#[test]
fn a_line_without_end_is_refused_at_107_bytes() {
    let long = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 100]].concat();
    assert_eq!(parse(&long[..106]), Ok(Parsed::More));
    assert_eq!(parse(&long[..107]), Err(Bad::Endless));
    let late = [&long[..106], b"\r\n"].concat();
    assert_eq!(parse(&late[..106]), Ok(Parsed::More));
    assert_eq!(parse(&late[..107]), Err(Bad::Endless), "its end would be the 108th");
    assert_eq!(parse(&late), Err(Bad::Endless));
}

#[test]
fn what_is_no_header_is_refused_at_the_first_byte_that_differs() {
    for bytes in ["G", "PROXI", "PROXY\r\n", "proxy ", "\r\n\r\n\0\r\nQUIX", "\n", "\x16\x03\x01"] {
        assert_eq!(parse(bytes.as_bytes()), Err(Bad::Absent), "{bytes:?}");
        let before = &bytes.as_bytes()[..bytes.len() - 1];
        if !bytes.starts_with("PROXY\r") && !bytes.starts_with(['p', '\x16']) {
            assert_eq!(parse(before), Ok(Parsed::More), "{bytes:?}");
        }
    }
}

/// Returns a version 2 header with this command, family and block.
fn v2(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[command, family], &length, block].concat()
}

/// The addresses of an IPv4 block (section 2.2): 198.51.100.7 port 4660 to 203.0.113.9 port 443.
const FOUR: &[u8] = &[198, 51, 100, 7, 203, 0, 113, 9, 0x12, 0x34, 0x01, 0xbb];

fn six() -> Vec<u8> {
    let source = "2001:db8::7".parse::<Ipv6Addr>().unwrap().octets();
    let target = "2001:db8::9".parse::<Ipv6Addr>().unwrap().octets();
    [&source[..], &target, &[0x12, 0x34, 0x01, 0xbb]].concat()
}

fn addition(kind: u8, value: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(value.len()).unwrap().to_be_bytes();
    [&[kind, high, low], value].concat()
}

#[test]
fn a_block_names_a_client() {
    done(&v2(0x21, 0x11, FOUR), Some("198.51.100.7:4660"));
    done(&v2(0x21, 0x21, &six()), Some("[2001:db8::7]:4660"));
}

#[test]
fn additions_are_skipped() {
    let additions =
        [addition(0x01, b"h2"), addition(0x04, b""), addition(0xee, &[7; 1000])].concat();
    done(&v2(0x21, 0x11, &[FOUR, &additions].concat()), Some("198.51.100.7:4660"));
    done(&v2(0x21, 0x21, &[six(), additions].concat()), Some("[2001:db8::7]:4660"));
}

#[test]
fn a_proxy_for_itself_names_nobody_whatever_its_block_is() {
    done(&v2(0x20, 0x00, b""), None);
    done(&v2(0x20, 0x11, FOUR), None);
    done(&v2(0x20, 0xff, b"anything"), None);
}

#[test]
fn families_without_an_address_of_ours_name_nobody() {
    done(&v2(0x21, 0x00, b""), None);
    done(&v2(0x21, 0x00, b"whatever it is"), None);
    done(&v2(0x21, 0x31, &[0; 216]), None);
    done(&v2(0x21, 0x32, &[0; 216]), None);
    done(&v2(0x21, 0x31, &[vec![0; 216], addition(1, b"h2")].concat()), None);
}

#[test]
fn a_sender_of_datagrams_is_not_the_client() {
    done(&v2(0x21, 0x12, FOUR), None);
    done(&v2(0x21, 0x22, &six()), None);
    done(&v2(0x21, 0x10, FOUR), None);
}

#[test]
fn unknown_commands_and_families_are_refused() {
    for command in (0..=0xff).filter(|command| !matches!(command, 0x20 | 0x21)) {
        assert_eq!(parse(&v2(command, 0x11, FOUR)), Err(Bad::Command), "{command:#x}");
    }
    for family in 0..=0xff {
        let known = family >> 4 <= 3 && family & 0xf <= 2;
        let refused = parse(&v2(0x21, family, &[0; 216])) == Err(Bad::Family);
        assert_eq!(refused, !known, "{family:#x}");
    }
}

#[test]
fn a_block_shorter_than_its_addresses_is_refused() {
    for (family, needs) in [(0x11, 12), (0x21, 36), (0x31, 216)] {
        for length in 0..needs {
            let header = v2(0x21, family, &vec![0; length]);
            assert_eq!(parse(&header), Err(Bad::Length), "{length} of {needs}");
        }
    }
}

#[test]
fn additions_that_do_not_end_with_the_block_are_refused() {
    let whole = addition(0x01, b"h2");
    for cut in 1..whole.len() {
        let header = v2(0x21, 0x11, &[FOUR, &whole[..cut]].concat());
        assert_eq!(parse(&header), Err(Bad::Length), "{cut}");
    }
}

#[test]
fn the_longest_block_is_accepted_and_one_byte_more_is_not_waited_for() {
    let value = vec![0; LONGEST_BLOCK - FOUR.len() - 3];
    let longest = v2(0x21, 0x11, &[FOUR, &addition(0xee, &value)].concat());
    assert_eq!(longest.len(), LONGEST);
    done(&longest, Some("198.51.100.7:4660"));
    let head = [SIGNATURE, &[0x21, 0x11, 0x08, 0x01]].concat();
    assert_eq!(parse(&head), Err(Bad::Long));
}

#[test]
fn the_checksum_is_castagnolis() {
    // The values of RFC 3720 appendix B.4, and the check value of the CRC catalogues.
    assert_eq!(crc32c([0; 32].iter()), 0x8a91_36aa);
    assert_eq!(crc32c([0xff; 32].iter()), 0x62a8_ab43);
    assert_eq!(crc32c(b"123456789".iter()), 0xe306_9283);
}

/// Returns a version 2 header with a correct checksum, which stands between two other additions.
fn summed() -> Vec<u8> {
    let [first, last] = [addition(0x01, b"h2"), addition(0x04, b"pad")];
    let mut header = v2(0x21, 0x11, &[FOUR, &first, &addition(CRC32C, &[0; 4]), &last].concat());
    let at = header.len() - last.len() - 4;
    let sum = crc32c(header.iter());
    header[at..at + 4].copy_from_slice(&sum.to_be_bytes());
    header
}

#[test]
fn a_header_with_the_right_checksum_is_accepted() {
    done(&summed(), Some("198.51.100.7:4660"));
}

#[test]
fn a_header_damaged_anywhere_is_not_taken_for_what_it_was() {
    let whole = summed();
    // The type of the checksum's addition is left undamaged: without it there is no checksum to
    // compare.
    let kind = FIXED + FOUR.len() + addition(0x01, b"h2").len();
    assert_eq!(whole[kind], CRC32C);
    for at in (0..whole.len()).filter(|&at| at != kind) {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            match parse(&damaged) {
                Ok(Parsed::Done { source: Some(_), .. }) => panic!("bit {bit} of byte {at}"),
                // The damage may make a command or family without an address, or a length that
                // needs more bytes.
                Ok(Parsed::Done { source: None, .. } | Parsed::More) | Err(_) => {}
            }
        }
    }
}

#[test]
fn a_checksum_of_another_length_is_refused() {
    for length in [0, 3, 5] {
        let block = [FOUR, &addition(CRC32C, &vec![0; length])].concat();
        assert_eq!(parse(&v2(0x21, 0x11, &block)), Err(Bad::Length), "{length}");
    }
}

fn good_headers() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr, u16, u16)>()
            .prop_map(|(a, b, p, q)| format!("PROXY TCP4 {a} {b} {p} {q}\r\n")),
        any::<(Ipv6Addr, Ipv6Addr, u16, u16)>()
            .prop_map(|(a, b, p, q)| format!("PROXY TCP6 {a} {b} {p} {q}\r\n")),
    ];
    let additions =
        prop::collection::vec((4..=0xff_u8, prop::collection::vec(any::<u8>(), 0..99)), 0..9);
    let block = (any::<[u8; 36]>(), additions, any::<bool>()).prop_map(|(address, more, six)| {
        let more: Vec<u8> = more.iter().flat_map(|(kind, value)| addition(*kind, value)).collect();
        let addresses = if six { &address[..] } else { &address[..12] };
        v2(0x21, if six { 0x21 } else { 0x11 }, &[addresses, &more].concat())
    });
    prop_oneof![line.prop_map(String::into_bytes), block, Just(summed())]
}

proptest! {
    #[test]
    fn every_good_header_names_a_client_and_each_of_its_beginnings_wants_more(
        header in good_headers(),
    ) {
        let parsed = parse(&header);
        let named = matches!(parsed, Ok(Parsed::Done { used, source: Some(_) }) if used == header.len());
        prop_assert!(named, "{parsed:?}");
        for length in 0..header.len() {
            prop_assert_eq!(parse(&header[..length]), Ok(Parsed::More));
        }
    }

    #[test]
    fn changed_bytes_never_panic_and_never_take_more_than_there_is(
        mut header in good_headers(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        more in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        header.extend(more);
        for (at, byte) in changes {
            let at = at.index(header.len());
            header[at] = byte;
        }
        match parse(&header) {
            Ok(Parsed::Done { used, .. }) => prop_assert!(used <= header.len().min(LONGEST)),
            Ok(Parsed::More) => prop_assert!(header.len() < LONGEST),
            Err(_) => {}
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), v2 in any::<bool>()) {
        let header = if v2 { [SIGNATURE, &bytes].concat() } else { [b"PROXY ", &bytes[..]].concat() };
        let _ = (parse(&bytes), parse(&header));
    }
}
