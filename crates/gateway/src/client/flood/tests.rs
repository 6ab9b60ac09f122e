use proptest::prelude::*;

use super::*;

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const HAS_PRIORITY: u8 = 0x20;
const REQUEST: u8 = END_STREAM | END_HEADERS;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The error code with which a client cancels a stream.
const CANCEL: [u8; 4] = [0, 0, 0, 8];
/// The payload of a PING.
const OPAQUE: [u8; 8] = [7; 8];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, l0, l1, l2] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[l0, l1, l2, kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// A client on one connection, with its own clock in seconds.
struct Client {
    frames: Frames,
    second: u32,
    newest: u32,
}

impl Client {
    fn new() -> Self {
        Self::with(Frames::new(100, false, 10))
    }

    fn with(frames: Frames) -> Self {
        let mut client = Self { frames, second: 1000, newest: 0 };
        client.frames.note(PREFACE, client.second).unwrap();
        client.send(walk::SETTINGS, 0, 0, &[0; 18]).unwrap();
        client.send(walk::SETTINGS, 1, 0, &[]).unwrap();
        client
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<(), Flood> {
        self.frames.note(&frame(kind, flags, stream, payload), self.second)
    }

    fn open(&mut self, flags: u8) -> Result<u32, Flood> {
        self.newest = if self.newest == 0 { 1 } else { self.newest + 2 };
        self.send(walk::HEADERS, flags, self.newest, &[0x82; 20])?;
        Ok(self.newest)
    }

    fn reset(&mut self, stream: u32) -> Result<(), Flood> {
        self.send(walk::RST_STREAM, 0, stream, &CANCEL)
    }

    fn ping(&mut self) -> Result<(), Flood> {
        self.send(walk::PING, 0, 0, &OPAQUE)?;
        self.frames.wrote(17);
        Ok(())
    }

    fn enlarge(&mut self, stream: u32, increment: u32) -> Result<(), Flood> {
        self.send(walk::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
    }
}

/// Repeats `flood` within one second until the connection is cut off. Returns the number of
/// repetitions, and the budget that was used up.
#[track_caller]
fn cut(mut flood: impl FnMut(&mut Client) -> Result<(), Flood>) -> (u32, Flood) {
    let mut client = Client::new();
    let mut times = 0;
    while times < 1_000_000 {
        times += 1;
        if let Err(why) = flood(&mut client) {
            return (times, why);
        }
    }
    panic!("a million times and not cut: {:?}", client.frames);
}

// Tests of clients that must be cut off.

#[test]
fn streams_opened_and_reset_at_once_are_cut_before_the_hundredth_request_has_an_end() {
    let rapid = cut(|client| {
        let stream = client.open(REQUEST)?;
        client.reset(stream)
    });
    assert_eq!(rapid, (100, Flood::Reset));
}

#[test]
fn streams_opened_by_the_hundred_and_then_reset_are_cut() {
    let mut client = Client::new();
    let mut opened = 0;
    let why = 'cut: loop {
        let streams: Vec<_> = (0..100).map(|_| client.open(REQUEST).unwrap()).collect();
        opened += 100;
        for stream in streams {
            if let Err(why) = client.reset(stream) {
                break 'cut why;
            }
        }
    };
    assert_eq!((opened, why), (100, Flood::Reset));
}

#[test]
fn more_streams_at_a_time_may_be_left_at_once_and_fewer_are_not_cut_sooner() {
    for (streams, pairs) in [(1, 100), (100, 100), (250, 250), (u32::MAX, 100_001)] {
        let mut client = Client::with(Frames::new(streams, false, 10));
        let cut = (1..=100_000).find(|_| {
            let stream = client.open(REQUEST).unwrap();
            client.reset(stream).is_err()
        });
        assert_eq!(cut.unwrap_or(100_001), pairs, "{streams}");
    }
}

#[test]
fn rapid_resets_for_an_hour_are_few() {
    let mut client = Client::new();
    let start = client.second;
    let mut requests = 0;
    for _ in 0..3_600 {
        client.second += 1;
        // Resets as long as the budget allows. A reset costs 2, of which opening the stream gives
        // back 1.
        while client.frames.young_resets >= 1 {
            let stream = client.open(REQUEST).unwrap();
            client.reset(stream).unwrap();
            requests += 1;
        }
    }
    let each_second = f64::from(requests) / f64::from(client.second - start);
    assert!(each_second < 3.1, "{each_second} a second");
}

#[test]
fn resets_of_what_is_reset_already_are_cut() {
    let mut client = Client::new();
    let stream = client.open(REQUEST).unwrap();
    client.second += 10;
    let times = (1..2_000).find(|_| client.reset(stream).is_err());
    assert_eq!(times, Some(1_001));
}

#[test]
fn a_list_of_fields_without_end_is_cut_by_its_frames_and_by_its_bytes() {
    let mut begun = false;
    let empty = cut(|client| {
        if !std::mem::replace(&mut begun, true) {
            client.open(END_STREAM)?;
        }
        client.send(walk::CONTINUATION, 0, client.newest, &[])
    });
    assert_eq!(empty, (17, Flood::Continuation));
    let mut begun = false;
    let large = cut(|client| {
        if !std::mem::replace(&mut begun, true) {
            client.open(END_STREAM)?;
        }
        client.send(walk::CONTINUATION, 0, client.newest, &[0; 16_384])
    });
    assert_eq!(large, (4, Flood::Continuation));
}

#[test]
fn one_frame_of_fields_beyond_64_kib_is_cut() {
    let mut client = Client::new();
    let large = client.send(walk::HEADERS, REQUEST, 1, &vec![0x82; (64 << 10) + 1]);
    assert_eq!(large, Err(Flood::Continuation));
}

#[test]
fn fields_without_end_for_one_stream_are_cut() {
    let trailers = cut(|client| client.send(walk::HEADERS, REQUEST, 1, &[0x82; 20]));
    assert_eq!(trailers, (1_002, Flood::Headers), "the first opens the stream");
}

#[test]
fn settings_and_their_acknowledgements_are_cut() {
    for flags in [0, 1] {
        let settings = cut(|client| client.send(walk::SETTINGS, flags, 0, &[]));
        assert_eq!(settings, (31, Flood::Settings), "two were sent before");
    }
}

#[test]
fn pings_are_cut_though_each_is_answered() {
    assert_eq!(cut(|client| client.send(walk::PING, 0, 0, &OPAQUE)), (129, Flood::Ping));
    assert_eq!(cut(Client::ping), (272, Flood::Ping));
}

#[test]
fn data_with_nothing_in_it_is_cut_padded_or_not() {
    let mut stream = 0;
    let empty = cut(|client| {
        if stream == 0 {
            stream = client.open(END_HEADERS)?;
        }
        client.send(walk::DATA, 0, stream, &[])
    });
    assert_eq!(empty, (65, Flood::EmptyData));
    let mut stream = 0;
    let padded = cut(|client| {
        if stream == 0 {
            stream = client.open(END_HEADERS)?;
        }
        client.send(walk::DATA, PADDED, stream, &[&[99][..], &[0; 99]].concat())
    });
    assert_eq!(padded, (65, Flood::EmptyData));
}

#[test]
fn data_with_a_byte_in_it_is_cut() {
    let (times, why) = cut(|client| client.send(walk::DATA, 0, 1, b"x"));
    assert_eq!((times, why), (10 * 50_000 / 4 + 1, Flood::SmallData));
}

#[test]
fn priorities_old_and_new_are_cut() {
    for kind in [walk::PRIORITY, walk::PRIORITY_UPDATE] {
        let priorities = cut(|client| client.send(kind, 0, 1, &[0, 0, 0, 3, 9]));
        assert_eq!(priorities, (1_001, Flood::Priority));
    }
}

#[test]
fn updates_of_windows_that_nothing_has_used_are_cut() {
    for stream in [0, 1] {
        let updates = cut(|client| client.enlarge(stream, 20));
        assert_eq!(updates, (1_001, Flood::WindowUpdate));
    }
}

#[test]
fn windows_opened_by_a_byte_are_cut_though_each_byte_is_sent() {
    let dribble = cut(|client| {
        client.enlarge(1, 1)?;
        client.frames.wrote(10);
        Ok(())
    });
    assert_eq!(dribble, (26_666, Flood::WindowUpdate));
}

#[test]
fn frames_of_no_meaning_are_cut() {
    // These are PUSH_PROMISE, GOAWAY, and a frame of an extension.
    for kind in [0x5, 0x7, 0x4d] {
        assert_eq!(cut(|client| client.send(kind, 0, 0, &[0; 8])), (1_001, Flood::Other));
    }
}

#[test]
fn frames_that_make_the_server_reset_are_cut() {
    let itself = |stream: u32| [&stream.to_be_bytes()[..], &[9]].concat();
    let after = Some((17, Flood::Provoked));
    let by = |flood: fn(&mut Client) -> Result<(), Flood>| Some(cut(flood));
    assert_eq!(by(|client| client.send(walk::PRIORITY, 0, 3, &[0x80, 0, 0, 3, 9])), after);
    assert_eq!(by(|client| client.enlarge(3, 0)), after);
    assert_eq!(by(|client| client.enlarge(3, 0x7fff_ffff)), after);
    let mut stream = 1;
    let headers = cut(|client| {
        stream += 2;
        let fields = [itself(stream), vec![0x82; 20]].concat();
        client.send(walk::HEADERS, REQUEST | HAS_PRIORITY, stream, &fields)
    });
    assert_eq!(Some(headers), after);
    let padded = cut(|client| {
        stream += 2;
        let fields = [vec![3], itself(stream), vec![0x82; 20], vec![0; 3]].concat();
        client.send(walk::HEADERS, REQUEST | HAS_PRIORITY | PADDED, stream, &fields)
    });
    assert_eq!(Some(padded), after);
    let bare = cut(|client| {
        stream += 2;
        client.send(walk::HEADERS, REQUEST, stream, &[])
    });
    assert_eq!(Some(bare), after);
}

// Tests of normal clients, which must not be cut off.

#[test]
fn a_stream_of_tiny_messages_is_never_cut() {
    let mut client = Client::new();
    let stream = client.open(END_HEADERS).unwrap();
    for _ in 0..10 {
        client.second += 1;
        for _ in 0..50_000 {
            // Send gRPC's empty message, which has 5 bytes.
            client.send(walk::DATA, 0, stream, &[0; 5]).unwrap();
        }
        client.frames.wrote(13 * 2 * 5);
    }
    client.send(walk::DATA, END_STREAM, stream, &[]).unwrap();
}

#[test]
fn a_client_that_measures_its_bandwidth_with_each_message_is_never_cut() {
    let mut client = Client::new();
    let stream = client.open(REQUEST).unwrap();
    for message in 0..300_000_u32 {
        client.second = 1000 + message / 5_000;
        // Send the smallest gRPC message, in a frame of its own.
        client.frames.wrote(9 + 7);
        client.ping().unwrap();
        // Enlarge the connection's window by a few bytes, as grpc-go does.
        client.enlarge(0, 7).unwrap();
        if message % 2_000 == 0 {
            client.enlarge(stream, 14_000).unwrap();
        }
    }
}

#[test]
fn a_client_that_gives_back_its_window_for_each_frame_is_never_cut() {
    let mut client = Client::new();
    let stream = client.open(REQUEST).unwrap();
    // The server sends a gigabyte within a second.
    for _ in 0..65_536 {
        client.frames.wrote(9 + 16_384);
        client.enlarge(0, 16_384).unwrap();
        client.enlarge(stream, 16_384).unwrap();
    }
    // Then the server sends a stream of small events, some of which the client reads late.
    for burst in 0..600 {
        client.second += 1;
        client.frames.wrote(400 * (9 + 40));
        for _ in 0..if burst % 2 == 0 { 0 } else { 800 } {
            client.enlarge(0, 40).unwrap();
            client.enlarge(stream, 40).unwrap();
        }
    }
}

#[test]
fn requests_as_fast_as_a_load_generator_makes_them_are_never_cut() {
    let mut client = Client::new();
    client.enlarge(0, (1 << 30) - 65_536).unwrap();
    for request in 0..200_000_u32 {
        client.second = 1000 + request / 50_000;
        client.open(REQUEST).unwrap();
        client.frames.wrote(9 + 30 + 9 + 200);
        if request % 100 == 0 {
            client.enlarge(0, 20_000).unwrap();
        }
    }
}

#[test]
fn calls_with_a_small_body_are_never_cut() {
    let mut client = Client::new();
    for call in 0..100_000_u32 {
        client.second = 1000 + call / 10_000;
        let stream = client.open(END_HEADERS).unwrap();
        client.send(walk::DATA, 0, stream, &[0; 5]).unwrap();
        client.send(walk::DATA, END_STREAM, stream, &[]).unwrap();
        client.frames.wrote(9 + 20 + 9 + 7 + 9 + 10);
        client.ping().unwrap();
    }
}

/// Requests a page and 100 pictures as older versions of Firefox did: with a larger window and ten
/// PRIORITY frames for each stream. Returns the streams.
fn page(client: &mut Client) -> Vec<u32> {
    (0..101)
        .map(|_| {
            let stream = client.open(REQUEST).unwrap();
            client.enlarge(stream, 12 << 20).unwrap();
            for _ in 0..10 {
                client.send(walk::PRIORITY, 0, stream, &[0, 0, 0, 0, 9]).unwrap();
            }
            stream
        })
        .collect()
}

#[test]
fn a_browser_that_leaves_a_page_of_a_hundred_pictures_at_once_is_not_cut() {
    let mut client = Client::new();
    for stream in [3, 5, 7, 9, 11, 13] {
        client.send(walk::PRIORITY, 0, stream, &[0, 0, 0, 0, 200]).unwrap();
    }
    for stream in page(&mut client).into_iter().skip(1) {
        client.reset(stream).unwrap();
    }
    // The user has read the next page for half a minute, and leaves it too.
    client.second += 34;
    for stream in page(&mut client).into_iter().skip(1) {
        client.reset(stream).unwrap();
    }
}

#[test]
fn users_who_wait_and_give_up_are_never_cut() {
    let mut client = Client::new();
    for _ in 0..100 {
        let streams = page(&mut client);
        client.second += 2;
        for stream in streams {
            client.reset(stream).unwrap();
            client.ping().unwrap();
        }
    }
}

#[test]
fn a_client_that_takes_back_less_than_half_is_never_cut() {
    let mut client = Client::new();
    for request in 0..100_000_u32 {
        client.second = 1000 + request / 1_000;
        let stream = client.open(REQUEST).unwrap();
        if request % 100 < 45 {
            client.reset(stream).unwrap();
            client.ping().unwrap();
        } else {
            client.frames.wrote(100);
        }
    }
}

#[test]
fn a_proxy_that_many_users_share_may_take_back_all_of_them() {
    let mut client = Client::with(Frames::new(100, true, 10));
    for _ in 0..100_000 {
        let stream = client.open(REQUEST).unwrap();
        client.reset(stream).unwrap();
    }
    let again = (1..2_000).find(|_| client.reset(1).is_err());
    assert_eq!(again, Some(1_000), "but only once each");
}

#[test]
fn a_client_that_only_keeps_its_connection_alive_is_never_cut() {
    let mut client = Client::new();
    for _ in 0..10_000 {
        client.second += 1;
        for _ in 0..10 {
            client.ping().unwrap();
        }
        client.send(walk::SETTINGS, 0, 0, &[0; 6]).unwrap();
    }
}

#[test]
fn a_list_of_fields_has_the_time_of_a_head() {
    let mut client = Client::new();
    client.open(REQUEST).unwrap();
    let list = frame(walk::HEADERS, END_STREAM, 3, &[0x82; 20]);
    let (first, rest) = list.split_at(15);
    client.frames.note(first, 1000).unwrap();
    client.frames.note(&rest[..1], 1010).unwrap();
    let late = client.frames.note(&rest[1..2], 1011);
    assert_eq!(late, Err(Flood::SlowList), "one byte of it at a time");

    let mut client = Client::new();
    client.frames.note(&list, 1000).unwrap();
    client.frames.note(&frame(walk::CONTINUATION, 0, 3, &[0x82; 4]), 1009).unwrap();
    let late = client.frames.note(&frame(walk::CONTINUATION, END_HEADERS, 3, &[0x82]), 1011);
    assert_eq!(late, Err(Flood::SlowList), "one frame of it at a time");
}

#[test]
fn a_list_that_has_come_has_no_time_left_to_run() {
    let mut client = Client::new();
    for (second, at_a_time) in [(1000, 64), (1010, 1), (1020, 7)] {
        let headers = frame(walk::HEADERS, END_STREAM, client.newest + 1, &[0x82; 20]);
        let more = frame(walk::CONTINUATION, END_HEADERS, client.newest + 1, &[0x82; 4]);
        for bytes in [headers, more].concat().chunks(at_a_time) {
            client.frames.note(bytes, second).unwrap();
        }
        client.newest += 2;
    }
    client.frames.note(&frame(walk::DATA, 0, 1, &[0; 2_000]), 5_000).unwrap();
}

// Tests of how frames and time are counted.

#[test]
fn a_clock_that_stands_or_goes_back_gives_nothing() {
    let mut client = Client::new();
    while client.send(walk::SETTINGS, 0, 0, &[]).is_ok() {}
    for second in [1000, 0, 999] {
        client.second = second;
        assert_eq!(client.send(walk::SETTINGS, 0, 0, &[]), Err(Flood::Settings));
    }
    client.second = 1001;
    assert_eq!(client.send(walk::SETTINGS, 0, 0, &[]), Ok(()));
    client.second = u32::MAX;
    assert_eq!(client.send(walk::SETTINGS, 0, 0, &[]), Ok(()));
}

#[test]
fn a_flood_behind_an_unfinished_frame_is_not_seen_before_it_ends() {
    let mut frames = Frames::new(100, false, 10);
    let large = frame(walk::DATA, 0, 1, &[0x4; 16_384]);
    let pings = frame(walk::PING, 0, 0, &OPAQUE).repeat(129);
    let all = [large.as_slice(), &pings].concat();
    assert_eq!(frames.note(&all[..all.len() - 1], 0), Err(Flood::Ping), "its head is enough");
    let mut frames = Frames::new(100, false, 10);
    assert_eq!(frames.note(&all[..all.len() - 9], 0), Ok(()));
}

#[test]
fn a_connection_costs_little() {
    assert!(size_of::<Frames>() <= 128, "{}", size_of::<Frames>());
}

#[test]
fn every_flood_has_a_name_of_its_own_at_its_number() {
    let mut names = Vec::new();
    for (number, flood) in Flood::ALL.into_iter().enumerate() {
        assert_eq!(flood as usize, number);
        names.push(flood.name());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Flood::ALL.len());
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..8),
        prop::collection::vec(any::<u8>(), 0..300),
    ];
    (0..12_u8, any::<u8>(), 0..9_u32, payload)
        .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, &payload))
}

proptest! {
    #[test]
    fn it_does_not_matter_how_the_bytes_are_cut(
        sent in prop::collection::vec(any_frame(), 1..80),
        preface in any::<bool>(),
        pieces in prop::collection::vec(1..40_usize, 1..20),
    ) {
        let bytes = [if preface { PREFACE } else { &[] }, &sent.concat()].concat();
        let mut whole = Frames::new(100, false, 10);
        let at_once = whole.note(&bytes, 7);
        let mut cut = Frames::new(100, false, 10);
        let mut rest = &bytes[..];
        let mut sizes = pieces.iter().cycle();
        let mut by_pieces = Ok(());
        while by_pieces.is_ok() && !rest.is_empty() {
            let (piece, next) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            by_pieces = cut.note(piece, 7);
            rest = next;
        }
        prop_assert_eq!(at_once, by_pieces);
        if at_once.is_ok() {
            prop_assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
        }
    }

    #[test]
    fn any_bytes_at_any_time_never_panic(
        reads in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..200), any::<u32>()), 0..50,
        ),
        wrote in any::<usize>(),
    ) {
        let mut frames = Frames::new(100, false, 10);
        for (bytes, second) in reads {
            let _ = frames.note(&bytes, second);
            frames.wrote(wrote);
        }
    }
}
