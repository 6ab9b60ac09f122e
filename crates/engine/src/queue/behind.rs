//! The cells that rank behind those of a policy. A cell is a FIFO list of requests of equal rank
//! (see `ranked.rs`). Requests are in these cells because of the behaviour of their clients, and
//! not because of their class.
//!
//! The cells form groups. The first group has one cell. Each other group has one cell for complete
//! requests and one for unfinished ones, so that complete requests are found in constant time while
//! unfinished ones may not run. Both cells of a group count as one rank: their requests are ordered
//! by arrival. For these cells the number of a cell is its rank.

/// The groups of cells behind those of the policy, best first.
#[derive(Clone, Copy)]
pub(super) enum Group {
    /// Requests of well-behaved holders whose bodies have not been received completely yet.
    Unfinished,
    /// Requests of unknown holders, during an attack of slow clients.
    Unknown,
    /// Requests of holders that retry again and again although they are refused.
    Insistent,
    /// Requests of holders that already have their share of the slots.
    SetBack,
    /// Requests of holders whose clients are slow.
    Slow,
}

/// The total number of cells of all groups.
const CELLS: usize = 2 * Group::Slow as usize + 1;

/// The numbers of the cells behind those of a policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    /// The number of cells that the policy has.
    policy: usize,
}

impl Behind {
    pub(super) const fn new(policy: usize) -> Self {
        Self { policy }
    }

    /// Returns the total number of cells: the policy's and those behind them.
    pub(super) const fn cells(self) -> usize {
        self.policy + CELLS
    }

    /// Returns the number of the first cell behind those of the policy. Requests in this and later
    /// cells do not indicate overload.
    pub(super) const fn first(self) -> usize {
        self.policy
    }

    /// Returns the cell of a group for complete or for unfinished requests.
    pub(super) const fn cell(self, group: Group, unfinished: bool) -> usize {
        self.policy + 2 * group as usize + unfinished as usize - 1
    }

    /// Returns the cells of a group, for complete and for unfinished requests. The only cell of the
    /// first group is returned twice.
    pub(super) fn both(self, group: Group) -> [usize; 2] {
        [matches!(group, Group::Unfinished), true].map(|unfinished| self.cell(group, unfinished))
    }

    /// Returns the two cells of the group that has this rank, for complete and for unfinished
    /// requests. Returns `None` for a rank of the policy or of the first group.
    pub(super) const fn pair(self, rank: u32) -> Option<[usize; 2]> {
        let rank = rank as usize;
        if rank <= self.policy {
            return None;
        }
        let complete = rank - (rank - self.policy + 1) % 2;
        Some([complete, complete + 1])
    }

    /// Returns whether the requests of this rank are unfinished.
    pub(super) const fn is_unfinished(self, rank: u32) -> bool {
        let rank = rank as usize;
        rank >= self.policy && (rank - self.policy).is_multiple_of(2)
    }

    /// Returns the number of ranks that are better than `rank`. Both cells of a group count as one
    /// rank.
    pub(super) const fn level(self, rank: u32) -> u32 {
        let first = self.policy as u32;
        if rank <= first { rank } else { first + (rank - first).div_ceil(2) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_group_but_the_first_has_two_cells_of_one_rank() {
        let behind = Behind::new(3);
        assert_eq!((behind.first(), behind.cells()), (3, 12));
        assert_eq!(behind.both(Group::Unfinished), [3, 3]);
        assert_eq!(behind.both(Group::Unknown), [4, 5]);
        assert_eq!(behind.both(Group::Slow), [10, 11]);
        let levels: Vec<u32> = (0..12).map(|rank| behind.level(rank)).collect();
        assert_eq!(levels, [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7]);
        assert_eq!(
            [3, 4, 5, 11].map(|rank| behind.pair(rank)),
            [None, Some([4, 5]), Some([4, 5]), Some([10, 11])]
        );
        let unfinished: Vec<u32> = (0..12).filter(|rank| behind.is_unfinished(*rank)).collect();
        assert_eq!(unfinished, [3, 5, 7, 9, 11]);
    }
}
