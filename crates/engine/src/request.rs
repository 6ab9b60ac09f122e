//! A request as the engine sees it, and the names of things.

use alloc::string::String;

use bywash_units::Utility;

use crate::terminate::Bounds;
use crate::throttle::RuleId;

/// A request in the engine's hands.
///
/// The driver gives the numbers and keeps them dense (a slab index): the engine's tables are
/// arrays over them. A number is in use from `Arrived` until its last event or action and may be
/// given again after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

impl RequestId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a class in the engine's list of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u8);

impl ClassId {
    /// As an array index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of classes; there are at most [`ClassSet::MOST`].
///
/// Outside one process it means something only beside the names of the classes: what is kept over
/// a restart is taken apart with [`ClassSet::iter`] and collected again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSet(u64);

impl ClassSet {
    /// How many classes there can be.
    pub const MOST: usize = 64;
    /// No class.
    pub const NONE: Self = Self(0);

    /// This set and `class`.
    #[must_use]
    pub const fn with(self, class: ClassId) -> Self {
        Self(self.0 | (1 << class.0))
    }

    /// Whether both sets have a class in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is no class in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether there is exactly one class in it.
    pub const fn is_one(self) -> bool {
        self.0.is_power_of_two()
    }

    /// This set without `class`.
    #[must_use]
    pub const fn without(self, class: ClassId) -> Self {
        Self(self.0 & !(1 << class.0))
    }

    /// The set as a number: bit `i` stands for the class with index `i`.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The set that [`ClassSet::bits`] gave this number for. Every number is a set.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The classes of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The classes in it, by index.
    pub fn iter(self) -> impl Iterator<Item = ClassId> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let class = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(ClassId(class as u8))
        })
    }
}

impl FromIterator<ClassId> for ClassSet {
    fn from_iter<I: IntoIterator<Item = ClassId>>(classes: I) -> Self {
        classes.into_iter().fold(Self::NONE, Self::with)
    }
}

/// `transact` earns, `browse` looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Part of a purchase.
    Transact,
    /// Anything else.
    Browse,
}

impl Tier {
    /// The word for it in files, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transact => "transact",
            Self::Browse => "browse",
        }
    }
}

/// A named kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Whether it earns.
    pub tier: Tier,
    /// What one of it is worth.
    pub utility: Utility,
    /// What a successful answer of it brings, on average; zero if it brings nothing by itself.
    pub earns: Utility,
    /// Places in its queue, for orders with a queue per class; the policy's default if `None`.
    pub queue: Option<u32>,
    /// A session has walked to this class once it was served one of these. Empty: once it was
    /// served anything.
    pub after: ClassSet,
    /// What is granted to requests that can be stopped while they run; `None`: none can.
    pub stop: Option<Bounds>,
    /// What a session that is here is worth because somebody has set it; `None`: what was learned.
    pub pinned: Option<Utility>,
}

impl Class {
    /// Whether every order treats this class as it treats `other`. Names and paths are not an
    /// order's business.
    pub(crate) fn ranks_like(&self, other: &Self) -> bool {
        let of = |class: &Self| (class.tier, class.utility, class.queue);
        of(self) == of(other)
    }
}

/// A visitor's session, as the keyed hash of its cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub u64);

/// A client address, as a keyed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressKey(pub u64);

/// What a request shows of a visitor before anything is proven: a cookie of an earlier visit, a
/// filled cart, where she comes from. The driver numbers the kinds; whether a kind means anything is
/// measured, never believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signals(u8);

impl Signals {
    /// How many kinds there can be: every combination of them is counted.
    pub const KINDS: usize = 4;
    /// How many combinations there can be.
    pub const MOST: usize = 1 << Self::KINDS;
    /// None.
    pub const NONE: Self = Self(0);

    /// These and `kind`, which is below [`Signals::KINDS`].
    ///
    /// # Panics
    /// If it is not.
    #[must_use]
    pub const fn with(self, kind: usize) -> Self {
        assert!(kind < Self::KINDS, "there are only so many kinds of signals");
        Self(self.0 | (1 << kind))
    }

    /// Whether `kind` is one of them.
    pub const fn has(self, kind: usize) -> bool {
        kind < Self::KINDS && self.0 & (1 << kind) != 0
    }

    /// As a number below [`Signals::MOST`]: bit `i` stands for kind `i`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The signals that [`Signals::index`] gave this number for; bits above the kinds are dropped.
    pub const fn from_index(index: usize) -> Self {
        Self((index % Self::MOST) as u8)
    }
}

/// What one visitor asks for, as a keyed hash: the same for a request and for its repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptKey(pub u64);

/// How much of a request's body has come when it asks for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upload {
    /// All of it, or there is none.
    Whole,
    /// Not all, so a slot that it has may wait for its client.
    Unfinished,
}

/// What is known of a request when it arrives. Nothing in it is believed but what the driver has
/// verified: the session counts only if the engine itself has seen it being served, or if a token
/// that the driver has verified says that it was.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its class; of several the lowest.
    pub class: ClassId,
    /// Further classes, where its path can be read in more than one way: it is treated as strictly
    /// as any of them would be ([`strict`](crate::classify::strict)).
    pub also: ClassSet,
    /// The session that it claims.
    pub session: Option<SessionKey>,
    /// Where it comes from.
    pub address: Option<AddressKey>,
    /// Its address is charged for what waits, as long as its session is not proven.
    pub charged: bool,
    /// What it shows of its visitor.
    pub signals: Signals,
    /// What a token that the driver has verified says its session was served.
    pub proven: ClassSet,
    /// What to know its repetition by.
    pub attempt: Option<AttemptKey>,
    /// It says itself that it is a repetition.
    pub retry: bool,
    /// Its driver would stop it while it runs, if its class can be: decided when it comes, so that nothing
    /// that changes later makes two of one mind.
    pub stoppable: bool,
    /// How much of its body has come.
    pub upload: Upload,
    /// The rule that it falls under, as an elephant. Of a transaction none counts.
    pub rule: Option<RuleId>,
}

impl Request {
    /// A request of `class` of which nothing else is known.
    pub const fn of(class: ClassId) -> Self {
        Self {
            class,
            also: ClassSet::NONE,
            session: None,
            address: None,
            charged: true,
            signals: Signals::NONE,
            proven: ClassSet::NONE,
            attempt: None,
            retry: false,
            stoppable: true,
            upload: Upload::Whole,
            rule: None,
        }
    }
}

/// How far a session has come, as far as it is proven. Better standings come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A transaction of a session that walked there.
    Transaction,
    /// A session that was served before.
    InProgress,
    /// A session that nothing is known of.
    New,
}

impl Standing {
    pub(crate) const COUNT: usize = 3;
    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [Self::Transaction, Self::InProgress, Self::New];

    /// For logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::InProgress => "in_progress",
            Self::New => "new",
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Transaction => 0,
            Self::InProgress => 1,
            Self::New => 2,
        }
    }
}
