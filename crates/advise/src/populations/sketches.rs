//! Estimates in bounded memory: how many addresses a population has, and how many clients asked for
//! a page.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of registers for the addresses of a population. The standard error is 1.04/√m, or
/// 3 %.
const REGISTERS: usize = 1024;
/// The number of cells in each of the two rows for the clients of pages.
const ROW: usize = 1 << 19;
/// The number of clients up to which few ask for a page.
const FEW: u32 = 10;
/// The number of requests of each population that are kept. The standard error of a share of them
/// is at most 1/(2·√n), or 3 %.
const KEPT: usize = 256;

/// Returns a hash that is the same in every run.
pub(super) fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Counts distinct addresses (Flajolet, Fusy, Gandouet and Meunier 2007, `HyperLogLog`). Each
/// register has the maximum rank of its hashes. There are none before the first address.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Vec<u8>);

impl Addresses {
    pub(super) fn add(&mut self, address: u64) {
        self.0.resize(REGISTERS, 0);
        let hash = hash(address);
        let register = &mut self.0[hash as usize % REGISTERS];
        *register = (*register).max(1 + hash.leading_zeros() as u8);
    }

    pub(super) fn absorb(&mut self, other: &Self) {
        self.0.resize(REGISTERS, 0);
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*other);
        }
    }

    pub(super) fn count(&self) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        let m = REGISTERS as f64;
        let sum: f64 = self.0.iter().map(|rank| 0.5_f64.powi((*rank).into())).sum();
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let free: f64 = self.0.iter().map(|rank| if *rank == 0 { 1.0 } else { 0.0 }).sum();
        if raw <= 2.5 * m && free > 0.0 { m * (m / free).ln() } else { raw }
    }
}

/// Records which clients asked for each page. A page has one cell in each of two rows, and a client
/// one of the 64 bits of a cell. Pages that share a cell in one row seldom do in the other.
#[derive(Debug)]
pub(super) struct Targets(Vec<u64>);

impl Default for Targets {
    fn default() -> Self {
        Self(vec![0; 2 * ROW])
    }
}

impl Targets {
    fn cells(target: u64) -> [usize; 2] {
        [target as usize % ROW, ROW + (target >> 32) as usize % ROW]
    }

    pub(super) fn add(&mut self, target: u64, client: u64) {
        for cell in Self::cells(target) {
            self.0[cell] |= 1 << (client % 64);
        }
    }

    /// Returns whether fewer than ten other clients asked for a page. The clients of up to ten bits
    /// are eleven at most on average, and one of them is the client itself.
    pub(super) fn is_rare(&self, target: u64) -> bool {
        let [one, other] = Self::cells(target).map(|cell| self.0[cell]);
        (one & other).count_ones() <= FEW
    }
}

/// A random sample of the pages that a population asked for (Vitter 1985, algorithm R).
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    targets: Vec<u64>,
    seen: u64,
}

impl Sample {
    pub(super) fn add(&mut self, target: u64) {
        self.seen += 1;
        let at = (hash(self.seen) % self.seen) as usize;
        if self.targets.len() < KEPT {
            self.targets.push(target);
        } else if let Some(kept) = self.targets.get_mut(at) {
            *kept = target;
        }
    }

    /// Adds the sample of another population. Its pages count as often as they are in the sample,
    /// not as often as clients requested them.
    pub(super) fn absorb(&mut self, other: &Self) {
        other.targets.iter().for_each(|target| self.add(*target));
    }

    /// Returns the share of the sample for which few clients asked.
    pub(super) fn rare(&self, targets: &Targets) -> f64 {
        let rare = self.targets.iter().filter(|target| targets.is_rare(**target)).count();
        rare as f64 / self.targets.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_counted_to_a_few_percent() {
        let mut all = Addresses::default();
        assert!(all.count().abs() < f64::EPSILON);
        for number in [1, 10, 100, 1_000, 3_000, 10_000, 1_000_000] {
            let mut one = Addresses::default();
            (0..number).for_each(|address| one.add(address));
            (0..number).for_each(|address| one.add(address));
            let count = one.count();
            assert!((count / number as f64 - 1.0).abs() < 0.08, "{count} of {number}");
            all.absorb(&one);
        }
        assert!((all.count() / 1e6 - 1.0).abs() < 0.08, "they are the same addresses");
    }

    #[test]
    fn a_page_is_rare_if_fewer_than_ten_other_clients_asked_for_it() {
        let mut targets = Targets::default();
        for target in 0..1000_u64 {
            let clients = if target % 2 == 0 { 8 } else { 20 };
            (0..clients).for_each(|client| targets.add(hash(target), hash((target, client))));
            (0..100).for_each(|_| targets.add(hash(target), hash((target, 0))));
        }
        let rare = |odd: u64| (0..500).filter(|n| targets.is_rare(hash(2 * n + odd))).count();
        assert_eq!(rare(0), 500);
        assert!(rare(1) < 5, "{}", rare(1));
        assert!(targets.is_rare(hash("/never")));
    }

    #[test]
    fn a_sample_represents_all_requests() {
        let mut targets = Targets::default();
        (0..64).for_each(|client| targets.add(hash(1), client));
        let mut sample = Sample::default();
        (0..100_000).for_each(|n| sample.add(hash(if n < 25_000 { 1 } else { 2 + n })));
        assert_eq!(sample.targets.len(), KEPT);
        let rare = sample.rare(&targets);
        assert!((rare - 0.75).abs() < 0.1, "{rare}");
        let mut other = Sample::default();
        other.absorb(&sample);
        assert!((other.rare(&targets) - rare).abs() < 1e-9);
        assert!(Sample::default().rare(&targets).abs() < f64::EPSILON);
    }
}
