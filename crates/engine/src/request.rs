//! A request as the engine sees it, and the types of its keys and identifiers.

use alloc::string::String;

use bywash_units::{TimeSpan, Utility};

/// The number of a request that the engine holds.
///
/// The driver assigns the numbers and keeps them dense (a slab index), because the engine's tables
/// are arrays over them. A number is in use from `Arrived` until its last event or action. After
/// that it may be assigned again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

impl RequestId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The index of a class in the engine's list of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u8);

impl ClassId {
    /// Returns the index as `usize`, for arrays.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of classes; it holds at most [`ClassSet::MOST`].
///
/// Outside one process the bits mean something only together with the class names. State that is
/// kept across a restart is split with [`ClassSet::iter`] and collected again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSet(u64);

impl ClassSet {
    /// The maximum number of classes.
    pub const MOST: usize = 64;
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns this set with `class` added.
    #[must_use]
    pub const fn with(self, class: ClassId) -> Self {
        Self(self.0 | (1 << class.0))
    }

    /// Returns whether the two sets have a class in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the set has exactly one class.
    pub const fn is_one(self) -> bool {
        self.0.is_power_of_two()
    }

    /// Returns this set without `class`.
    #[must_use]
    pub const fn without(self, class: ClassId) -> Self {
        Self(self.0 & !(1 << class.0))
    }

    /// Returns the set as a number: bit `i` stands for the class with index `i`.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the set that [`ClassSet::bits`] gave this number for. Every number is a valid set.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the classes that are in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the classes of the set, by index.
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

/// Whether a class is part of a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Part of a purchase.
    Transaction,
    /// All other requests.
    Browsing,
}

impl Tier {
    /// Returns the name that files, logs and metrics use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Browsing => "browsing",
        }
    }
}

/// A named class of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The class's name.
    pub name: String,
    /// Whether the class is part of a purchase.
    pub tier: Tier,
    /// The utility of one request of the class.
    pub utility: Utility,
    /// The average revenue of a successful answer; zero if the class itself brings none.
    pub revenue: Utility,
    /// The number of places in the class's queue, for schedulers with a queue per class. `None`
    /// means the policy's default.
    pub queue: Option<u32>,
    /// The classes of which a session must have been served at least one to have a proven path to
    /// this class. If the set is empty, being served anything is enough.
    pub requires: ClassSet,
    /// The bounds on the running time of requests that can be stopped; `None` if no request of the
    /// class can be stopped.
    pub stop: Option<Bounds>,
    /// A configured value of a session that is at this class; `None` to use the learned value.
    pub fixed_value: Option<Utility>,
}

impl Class {
    /// The name of the class of requests that no pattern matches.
    pub const OTHER: &str = "other";

    /// Returns whether every scheduler treats this class as it treats `other`. The only name that
    /// matters to schedulers is [`Class::OTHER`]; paths do not matter.
    pub(crate) fn ranks_like(&self, other: &Self) -> bool {
        let of = |class: &Self| (class.tier, class.utility, class.queue, class.name == Self::OTHER);
        of(self) == of(other)
    }
}

/// The bounds that a class grants to its requests that can be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The time before which no request is stopped: LB of paper 2.
    pub min: TimeSpan,
    /// The time after which an answer is no longer useful: UB of paper 2.
    pub max: TimeSpan,
}

/// A rule's number; it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

/// A visitor's session, as the keyed hash of its cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub u64);

/// A client address, as a keyed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressKey(pub u64);

/// The signals that a request shows before its session has proven anything: a cookie of an earlier
/// visit, a filled cart, the site that the visitor comes from.
///
/// The driver numbers the kinds of signals. Whether a kind means anything is measured, never
/// assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signals(u8);

impl Signals {
    /// The maximum number of kinds. Every combination of kinds is counted.
    pub const KINDS: usize = 4;
    /// The number of combinations of kinds.
    pub const MOST: usize = 1 << Self::KINDS;
    /// No signals.
    pub const NONE: Self = Self(0);

    /// Returns these signals with `kind` added.
    ///
    /// # Panics
    /// Panics if `kind` is not below [`Signals::KINDS`].
    #[must_use]
    pub const fn with(self, kind: usize) -> Self {
        assert!(kind < Self::KINDS, "there are only so many kinds of signals");
        Self(self.0 | (1 << kind))
    }

    /// Returns whether `kind` is one of these signals.
    pub const fn has(self, kind: usize) -> bool {
        kind < Self::KINDS && self.0 & (1 << kind) != 0
    }

    /// Returns the signals as a number below [`Signals::MOST`]: bit `i` stands for kind `i`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the signals that [`Signals::index`] gave this number for. Bits above the kinds are
    /// dropped.
    pub const fn from_index(index: usize) -> Self {
        Self((index % Self::MOST) as u8)
    }
}

/// The content that one visitor asks for, as a keyed hash. A request and its repetition have the
/// same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptKey(pub u64);

/// How much of a request's body has been received when the request asks for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upload {
    /// The whole body has been received, or there is none.
    Whole,
    /// Part of the body is missing, so the request's slot may wait for its client.
    Unfinished,
}

/// The facts known about a request when it arrives.
///
/// The engine trusts only facts that the driver has verified. The session counts only if the engine
/// itself has seen it being served, or if a token that the driver has verified says that it was
/// served.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The request's class; the lowest if there are several.
    pub class: ClassId,
    /// Further classes, if the path can be read in more than one way. The request is treated as
    /// strictly as the strictest of them would be ([`strict`](crate::classify::strict)).
    pub also: ClassSet,
    /// The session that the request claims.
    pub session: Option<SessionKey>,
    /// The client's address.
    pub address: Option<AddressKey>,
    /// Whether the address is charged for the waiting request as long as the session is not proven.
    pub charged: bool,
    /// The signals that the request shows.
    pub signals: Signals,
    /// The classes that the session was served according to a token that the driver has verified.
    pub proven: ClassSet,
    /// The key that identifies a repetition of this request.
    pub attempt: Option<AttemptKey>,
    /// Whether the request itself declares that it is a repetition.
    pub retry: bool,
    /// Whether the driver would stop the request while it runs, if its class can be stopped. This
    /// is decided on arrival, so that a later change of settings cannot make the driver and the
    /// engine disagree.
    pub cancellable: bool,
    /// How much of the body has been received.
    pub upload: Upload,
    /// The rule that the request falls under, as an elephant. Rules do not apply to transactions.
    pub rule: Option<RuleId>,
}

impl Request {
    /// Creates a request of `class` about which nothing else is known.
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
            cancellable: true,
            upload: Upload::Whole,
            rule: None,
        }
    }
}

/// How far a session has come, as far as that is proven. Better standings sort first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A transaction of a session with a proven path to it.
    Transaction,
    /// A request of a session that was served before.
    InProgress,
    /// A request of a session about which nothing is known.
    New,
}

impl Standing {
    pub(crate) const COUNT: usize = 3;
    /// All standings.
    pub const ALL: [Self; Self::COUNT] = [Self::Transaction, Self::InProgress, Self::New];

    /// Returns the name that logs use.
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
