//! The engine's view of a request, with the types of its keys and identifiers.

use alloc::string::String;

use bywash_units::{TimeSpan, Utility};

/// The number by which the driver and the engine refer to a request that the engine holds.
///
/// The driver assigns the numbers. It keeps them small and dense (slab indices), because the
/// engine's tables are arrays indexed by them. A number is in use from the request's `Arrived`
/// event until its last event or action. After that the driver may assign it to another request.
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

/// A set of classes, stored as one bit per class; at most [`ClassSet::MOST`] classes exist.
///
/// A bit stands for the index of a class in the present configuration. To keep a set across a
/// restart, save the names of the classes that [`ClassSet::iter`] yields, and collect the set again
/// from their new indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSet(u64);

impl ClassSet {
    /// The maximum number of classes in a set, and so in a configuration.
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

    /// Returns whether the set contains exactly one class.
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

    /// Creates a set from the number that [`ClassSet::bits`] returned. Every number is a valid set.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the classes that are in at least one of the two sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the classes of the set, in ascending order of their indices.
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

/// The part that a class has in a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Part of a purchase.
    Transaction,
    /// Any other request.
    Browsing,
}

impl Tier {
    /// Returns the name that the configuration, logs and metrics use.
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
    /// Whether requests of the class are a step of a purchase.
    pub tier: Tier,
    /// The configured worth of one request of the class. Only its ratio to other utilities counts.
    pub utility: Utility,
    /// The average revenue of one successful answer of the class; zero if its answers bring none.
    pub revenue: Utility,
    /// The maximum number of waiting requests of the class, for schedulers with a queue per class.
    /// `None` means the default of the scheduler.
    pub queue: Option<u32>,
    /// The classes that lead to this one. A session has a proven path to this class if it was
    /// served at least one of them. If the set is empty, a session that was served any class has a
    /// proven path.
    pub requires: ClassSet,
    /// The bounds on the running time of the class's requests, within which they may be stopped.
    /// `None` means that no request of the class may be stopped.
    pub stop: Option<Bounds>,
    /// The configured value of a session from this class on, which replaces the learned value.
    /// `None` means that the learned value counts.
    pub fixed_value: Option<Utility>,
}

impl Class {
    /// The name of the class of requests that no pattern matches.
    pub const OTHER: &str = "other";

    /// Returns whether no scheduler can distinguish this class from `other`.
    ///
    /// Schedulers look at the tier, the utility and the queue length of a class. They see only one
    /// thing about its name: whether it is [`Class::OTHER`].
    pub(crate) fn ranks_like(&self, other: &Self) -> bool {
        let of = |class: &Self| (class.tier, class.utility, class.queue, class.name == Self::OTHER);
        of(self) == of(other)
    }
}

/// The bounds on the running time of the requests of a class that may be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The running time before which no request is stopped (LB in paper 2).
    pub min: TimeSpan,
    /// The running time after which an answer is no longer useful (UB in paper 2).
    pub max: TimeSpan,
}

/// The number of a throttle rule. A number is never assigned to another rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

/// The key of a visitor's session: a keyed hash of the session cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub u64);

/// The key of a client address: a keyed hash of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressKey(pub u64);

/// The key of a population of clients: a keyed hash of what their requests have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PopulationKey(pub u64);

/// The key of a client: a keyed hash of its address and its browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VisitorKey(pub u64);

/// The signals that a request shows before its session has proven anything. Examples of signals are
/// a cookie of an earlier visit, a filled cart, and the site that the visitor comes from.
///
/// The driver numbers the kinds of signals. The engine measures what each combination says about
/// later orders, and assumes nothing about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signals(u8);

impl Signals {
    /// The maximum number of kinds of signals. The engine counts every combination of kinds
    /// separately.
    pub const KINDS: usize = 4;
    /// The number of combinations of kinds.
    pub const MOST: usize = 1 << Self::KINDS;
    /// The empty set of signals.
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

    /// Creates signals from the number that [`Signals::index`] returned. Bits from
    /// [`Signals::KINDS`] on are ignored.
    pub const fn from_index(index: usize) -> Self {
        Self((index % Self::MOST) as u8)
    }
}

/// The key that identifies a request and its repetitions: a keyed hash of the visitor and of the
/// requested content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptKey(pub u64);

/// A target of requests: a keyed hash of the host, the path and the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetKey(pub u64);

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
/// The engine trusts only facts that the driver has verified. A claimed session counts only if the
/// engine itself has seen that it was served, or if a verified token says so.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact about the request")]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The request's class. If the path can be read as several classes, this is the class that
    /// ranks lowest ([`lowest`](crate::classify::strict::lowest)).
    pub class: ClassId,
    /// The other classes that the path can be read as; usually empty. For each kind of treatment
    /// the request is treated as the strictest of all its classes
    /// ([`strict`](crate::classify::strict)).
    pub also: ClassSet,
    /// The session that the request claims to belong to.
    pub session: Option<SessionKey>,
    /// The client's address.
    pub address: Option<AddressKey>,
    /// Whether the waiting request counts against its address as long as its session is not proven.
    pub charged: bool,
    /// The signals that the request itself shows.
    pub signals: Signals,
    /// The population of the client, if the driver tells populations apart.
    pub population: Option<PopulationKey>,
    /// The client, if the driver tells populations apart.
    pub visitor: Option<VisitorKey>,
    /// The target, if the driver tells targets apart.
    pub target: Option<TargetKey>,
    /// Whether the request is for a part of a page, such as a style sheet. Such a request neither
    /// begins a visit nor shows that its client reads on.
    pub part: bool,
    /// The classes that a verified token says the session was served.
    pub proven: ClassSet,
    /// The key by which a repetition of this request is recognised.
    pub attempt: Option<AttemptKey>,
    /// Whether the request itself declares that it is a repetition.
    pub retry: bool,
    /// Whether the driver is willing to stop the request while it runs, if its class allows that.
    ///
    /// The driver decides this when the request arrives. So a later change of settings cannot make
    /// the driver and the engine disagree.
    pub cancellable: bool,
    /// How much of the request's body has been received.
    pub upload: Upload,
    /// The throttle rule whose pattern the request matches. Rules do not apply to transactions.
    pub rule: Option<RuleId>,
}

impl Request {
    /// Creates a request of `class` about which nothing else is known. It may be stopped, and its
    /// body is complete.
    pub const fn of(class: ClassId) -> Self {
        Self {
            class,
            also: ClassSet::NONE,
            session: None,
            address: None,
            charged: true,
            signals: Signals::NONE,
            population: None,
            visitor: None,
            target: None,
            part: false,
            proven: ClassSet::NONE,
            attempt: None,
            retry: false,
            cancellable: true,
            upload: Upload::Whole,
            rule: None,
        }
    }
}

/// The proven progress of a request's session. Better standings sort first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A request of a transaction class whose session has a proven path to that class.
    Transaction,
    /// Any other request of a session that was served before.
    InProgress,
    /// Any request of a session that is not known to have been served.
    New,
}

impl Standing {
    pub(crate) const COUNT: usize = 3;
    /// All standings, best first.
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
