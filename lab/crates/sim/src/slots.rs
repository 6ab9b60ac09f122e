//! Slabs with dense, reused indices for requests, visitors and adversaries.

/// A slab: a collection of values with small indices. The index of a freed entry is used again.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn put(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(value);
            return number;
        }
        self.slots.push(Some(value));
        self.slots.len() as u32 - 1
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.slots.get(number as usize).and_then(Option::as_ref)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> &mut T {
        self.slots[number as usize].as_mut().expect("the world names only requests that are in it")
    }

    pub(crate) fn free(&mut self, number: u32) {
        self.slots[number as usize] = None;
        self.free.push(number);
    }

    pub(crate) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
