//! What can be done with an item, in three steps: who wants to, what exactly, and done.

use crate::Page;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Bid,
    Buy,
    Comment,
}

/// A page that is the same for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StaticPage {
    Home,
    Register,
    Browse,
    Sell,
    AboutMe,
    Logo,
}

impl Action {
    /// The page that has the form for what exactly.
    pub(crate) const fn form(self) -> Page {
        match self {
            Self::Bid => Page::PutBid,
            Self::Buy => Page::BuyNow,
            Self::Comment => Page::PutComment,
        }
    }

    /// The page that does it.
    pub(crate) const fn store(self) -> Page {
        match self {
            Self::Bid => Page::StoreBid,
            Self::Buy => Page::StoreBuyNow,
            Self::Comment => Page::StoreComment,
        }
    }
}
