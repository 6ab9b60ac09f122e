//! Frames are counted the same however they are cut into reads, and none makes the counter stop.
//!
//! The first byte of the input says how many streams may be open and whether the connection is
//! shared, the second in which pieces the rest comes; a second passes after each 64 bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// The gateway's own files: they are not public there.
#[allow(dead_code, reason = "what other parts of the gateway ask for")]
#[path = "../../crates/gateway/src/client"]
mod client {
    pub(crate) mod flood;
}

use client::flood::{Flood, Frames};

fuzz_target!(|input: &[u8]| {
    let [kind, piece, bytes @ ..] = input else { return };
    let (streams, shared) = (u32::from(kind >> 1), kind & 1 == 1);
    let counted = |piece: usize| {
        let mut frames = Frames::new(streams, shared, 10);
        counted(&mut frames, bytes, piece)
    };
    let whole = counted(64);
    assert_eq!(counted(1), whole);
    assert_eq!(counted(usize::from(*piece).max(1)), whole);
    if let Err(flood) = whole {
        assert!(Flood::ALL.contains(&flood) && !flood.name().is_empty());
    }
});

fn counted(frames: &mut Frames, bytes: &[u8], piece: usize) -> Result<(), Flood> {
    for (second, bytes) in bytes.chunks(64).enumerate() {
        let second = u32::try_from(second).expect("inputs are short");
        for piece in bytes.chunks(piece) {
            frames.note(piece, second)?;
        }
        frames.wrote(bytes.len());
    }
    Ok(())
}
