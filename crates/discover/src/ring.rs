//! The last coarse windows, each by itself: fading sums cannot tell how sure a cost is.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::columns::Column;
use crate::rows::Row;

/// Coarse windows that are kept: with the shortest, two hours.
pub(crate) const MOST: usize = 1440;

/// What was worked on in a while, and what was used.
#[derive(Clone, Debug)]
pub(crate) struct Coarse {
    number: u64,
    pub(crate) row: Row,
    pub(crate) used: Vec<f64>,
    /// Steps of it whose use was read.
    pub(crate) steps: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    /// Steps of a coarse window.
    steps: u64,
    windows: VecDeque<Coarse>,
}

impl Ring {
    pub(crate) fn new(steps: u64) -> Self {
        Self { steps, windows: VecDeque::new() }
    }

    /// A step, and what was used in it.
    pub(crate) fn add(&mut self, step: u64, row: &Row, used: &[f64]) {
        let number = step / self.steps;
        if self.windows.back().is_none_or(|last| last.number != number) {
            if self.windows.len() == MOST {
                self.windows.pop_front();
            }
            let used = vec![0.0; used.len()];
            self.windows.push_back(Coarse { number, row: Row::default(), used, steps: 0 });
        }
        let last = self.windows.back_mut().expect("one was put in if there was none");
        last.row.add(row);
        last.used.iter_mut().zip(used).for_each(|(sum, used)| *sum += used);
        last.steps += 1;
    }

    /// All of them, the oldest first; the last may not be over.
    pub(crate) fn windows(&self) -> impl Iterator<Item = &Coarse> {
        self.windows.iter()
    }

    /// So many coarse windows make one, by their time: those with few readings among them are as good as others, as
    /// both sides of the equation are of the same steps.
    pub(crate) fn together(&self, times: u64) -> Vec<Vec<&Coarse>> {
        let mut groups: Vec<Vec<&Coarse>> = Vec::new();
        for window in &self.windows {
            match groups.last_mut() {
                Some(group) if group[0].number / times == window.number / times => {
                    group.push(window);
                }
                _ => groups.push(vec![window]),
            }
        }
        groups
    }

    /// Steps that were read.
    pub(crate) fn steps(&self) -> u64 {
        self.windows.iter().map(|window| u64::from(window.steps)).sum()
    }

    pub(crate) fn fold(&mut self, column: Column) {
        self.windows.iter_mut().for_each(|window| window.row.fold(column));
    }
}
