//! The answer to a request for a file, read from the server before the client takes it.
//!
//! A request for a file holds no slot, so the engine does not stop it if its client reads slowly. A
//! server with one process for each connection would stay occupied while the client reads.
//! Therefore the gateway reads such an answer as fast as the server sends it, up to the size of the
//! largest file. It buffers what the client has not taken.
//!
//! **Bounds.** The request holds its permit until the server has sent everything. Then the permit
//! is given back, unless [`MOST_KEPT`] such buffered files exist already, or the memory budget is
//! nearly used up. In these two cases the permit stays with the buffered bytes. So slow clients
//! hold at most [`MOST_KEPT`] files and one more for each permit. The bytes count against the
//! memory budget, and `client_limits.body_rate` ends a client that is too slow.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::io::body::Piece;
use crate::process::memory::{Level, MemoryReservation};
use crate::shared::{CountedPermit, Shared};
use crate::static_files::LARGEST;
use crate::upstream::UpstreamError;

/// The maximum number of buffered files, over all clients, whose permits were given back.
const MOST_KEPT: usize = 256;

/// The number of bytes that each buffered piece counts in addition to its data.
const PIECE: usize = 128;

/// The part of an answer that was read from the server and that the client has not taken yet.
pub(super) struct ReadAhead {
    /// The pieces in the order of their arrival. The end of the body, or an error, is the last.
    pieces: VecDeque<Result<Piece, UpstreamError>>,
    held: MemoryReservation,
    /// The permit of the request, or the entry in the count of buffered files that has replaced it.
    permit: CountedPermit,
}

impl ReadAhead {
    pub(super) fn new(shared: &Shared, permit: CountedPermit) -> Self {
        Self { pieces: VecDeque::new(), held: shared.memory.hold(0), permit }
    }

    /// Returns whether another piece may be read from the server: less than [`LARGEST`] is
    /// buffered.
    pub(super) fn has_room(&self) -> bool {
        (self.held.bytes() as u64) < LARGEST
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Buffers a piece until the client takes it.
    pub(super) fn push(&mut self, piece: Result<Piece, UpstreamError>) {
        self.held.set(self.held.bytes() + size(&piece));
        self.pieces.push_back(piece);
    }

    /// Removes the oldest buffered piece and returns it. Returns `None` if there is none.
    pub(super) fn take(&mut self) -> Option<Result<Piece, UpstreamError>> {
        let piece = self.pieces.pop_front()?;
        self.held.set(self.held.bytes() - size(&piece));
        Some(piece)
    }

    /// Records that the server has sent everything. Gives the permit back, unless too many files
    /// are buffered or the memory budget is nearly used up.
    pub(super) fn server_is_done(&mut self, shared: &Arc<Shared>) {
        if shared.memory.level() > Level::Calm {
            return;
        }
        if let Some(permit) = CountedPermit::kept_file(shared, MOST_KEPT) {
            self.permit = permit;
        }
    }
}

/// Returns the number of bytes that a piece counts against the memory budget.
fn size(piece: &Result<Piece, UpstreamError>) -> usize {
    match piece {
        Ok(Piece::Data(data)) => data.len() + PIECE,
        Ok(Piece::End(_)) | Err(_) => PIECE,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::process::secret::Secret;
    use crate::request::fuzz::{config, shared};

    fn gateway() -> Arc<Shared> {
        Arc::new(shared(config(""), Secret(1, 2)))
    }

    fn file(shared: &Arc<Shared>) -> ReadAhead {
        let permit = CountedPermit::file(shared, usize::MAX, usize::MAX).unwrap();
        ReadAhead::new(shared, permit)
    }

    #[test]
    fn no_more_than_the_largest_file_is_kept_and_it_counts_against_the_memory_budget() {
        const DATA: usize = 64 * 1024;
        let shared = gateway();
        let mut ahead = file(&shared);
        let before = shared.memory.used();
        while ahead.has_room() {
            ahead.push(Ok(Piece::Data(vec![0; DATA].into())));
        }
        let kept = (shared.memory.used() - before) as u64;
        assert!((LARGEST..LARGEST + (DATA + PIECE) as u64).contains(&kept), "{kept}");
        while let Some(piece) = ahead.take() {
            assert!(piece.is_ok());
        }
        assert!(ahead.is_empty() && ahead.has_room());
        assert_eq!(shared.memory.used(), before);
    }

    #[test]
    fn a_permit_is_given_back_when_the_server_is_done_unless_clients_hold_many_files() {
        let shared = gateway();
        let permits = || shared.file_requests.load(Ordering::Relaxed);
        let done = |mut ahead: ReadAhead| {
            ahead.server_is_done(&shared);
            ahead
        };
        let kept: Vec<_> = (0..MOST_KEPT).map(|_| done(file(&shared))).collect();
        assert_eq!(permits(), 0);
        let another = done(file(&shared));
        assert_eq!(permits(), 1, "it stays with the file");
        drop(kept);
        let another = done(another);
        assert_eq!(permits(), 0);
        drop(another);
        assert_eq!(shared.kept_files.load(Ordering::Relaxed), 0);
    }
}
