//! Checks that the count of frames does not depend on how the bytes are divided into reads, and
//! that no input makes the counter panic.
//!
//! The first byte of the input determines how many streams may be open and whether the connection
//! is shared. The second byte is the size of the pieces in which the rest of the input arrives. One
//! second of time passes after each 64 bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// The gateway's own files, included here because their module is private in the gateway.
#[allow(dead_code, reason = "what other parts of the gateway ask for")]
#[path = "../../crates/gateway/src/client"]
mod client {
    pub(crate) mod flood;
}

/// The labels of the gateway's metrics, under the module path by which the included files refer to
/// them.
#[allow(dead_code, reason = "what other parts of the gateway ask for")]
#[path = "../../crates/gateway/src/telemetry/metrics"]
mod telemetry {
    #[path = "labels.rs"]
    pub(crate) mod metrics;
}

use client::flood::Frames;
use telemetry::metrics::Flood;

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
