//! The pages of the site, which are those of `RUBiS` with their original paths.

use http::Method;
use serde::Serialize;

/// One page of the site, which has one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[allow(missing_docs, reason = "the name is that of the path; the README has the table")]
pub enum Page {
    Home,
    Register,
    RegisterUser,
    Browse,
    BrowseCategories,
    SearchItemsByCategory,
    BrowseRegions,
    SearchItemsByRegion,
    ViewItem,
    ViewUserInfo,
    ViewBidHistory,
    BuyNowAuth,
    BuyNow,
    StoreBuyNow,
    PutBidAuth,
    PutBid,
    StoreBid,
    PutCommentAuth,
    PutComment,
    StoreComment,
    Sell,
    SellItemForm,
    RegisterItem,
    AboutMeAuth,
    AboutMe,
    Logo,
}

impl Page {
    /// Every page, ordered so that `ALL[page.index()] == page`.
    pub const ALL: [Self; 26] = [
        Self::Home,
        Self::Register,
        Self::RegisterUser,
        Self::Browse,
        Self::BrowseCategories,
        Self::SearchItemsByCategory,
        Self::BrowseRegions,
        Self::SearchItemsByRegion,
        Self::ViewItem,
        Self::ViewUserInfo,
        Self::ViewBidHistory,
        Self::BuyNowAuth,
        Self::BuyNow,
        Self::StoreBuyNow,
        Self::PutBidAuth,
        Self::PutBid,
        Self::StoreBid,
        Self::PutCommentAuth,
        Self::PutComment,
        Self::StoreComment,
        Self::Sell,
        Self::SellItemForm,
        Self::RegisterItem,
        Self::AboutMeAuth,
        Self::AboutMe,
        Self::Logo,
    ];

    /// Returns the index of the page in [`Page::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the path of the page.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Home => "/",
            Self::Register => "/PHP/register.html",
            Self::RegisterUser => "/PHP/RegisterUser.php",
            Self::Browse => "/PHP/browse.html",
            Self::BrowseCategories => "/PHP/BrowseCategories.php",
            Self::SearchItemsByCategory => "/PHP/SearchItemsByCategory.php",
            Self::BrowseRegions => "/PHP/BrowseRegions.php",
            Self::SearchItemsByRegion => "/PHP/SearchItemsByRegion.php",
            Self::ViewItem => "/PHP/ViewItem.php",
            Self::ViewUserInfo => "/PHP/ViewUserInfo.php",
            Self::ViewBidHistory => "/PHP/ViewBidHistory.php",
            Self::BuyNowAuth => "/PHP/BuyNowAuth.php",
            Self::BuyNow => "/PHP/BuyNow.php",
            Self::StoreBuyNow => "/PHP/StoreBuyNow.php",
            Self::PutBidAuth => "/PHP/PutBidAuth.php",
            Self::PutBid => "/PHP/PutBid.php",
            Self::StoreBid => "/PHP/StoreBid.php",
            Self::PutCommentAuth => "/PHP/PutCommentAuth.php",
            Self::PutComment => "/PHP/PutComment.php",
            Self::StoreComment => "/PHP/StoreComment.php",
            Self::Sell => "/PHP/sell.html",
            Self::SellItemForm => "/PHP/SellItemForm.php",
            Self::RegisterItem => "/PHP/RegisterItem.php",
            Self::AboutMeAuth => "/PHP/about_me.html",
            Self::AboutMe => "/PHP/AboutMe.php",
            Self::Logo => "/PHP/RUBiS_logo.jpg",
        }
    }

    /// Returns the HTTP method of the page. A request that changes something is a `POST`. A request
    /// with a password is also a `POST`, because a password must not be in a log of URLs.
    pub const fn method(self) -> Method {
        match self {
            Self::RegisterUser
            | Self::BuyNow
            | Self::StoreBuyNow
            | Self::PutBid
            | Self::StoreBid
            | Self::PutComment
            | Self::StoreComment
            | Self::RegisterItem
            | Self::AboutMe => Method::POST,
            Self::Home
            | Self::Register
            | Self::Browse
            | Self::BrowseCategories
            | Self::SearchItemsByCategory
            | Self::BrowseRegions
            | Self::SearchItemsByRegion
            | Self::ViewItem
            | Self::ViewUserInfo
            | Self::ViewBidHistory
            | Self::BuyNowAuth
            | Self::PutBidAuth
            | Self::PutCommentAuth
            | Self::Sell
            | Self::SellItemForm
            | Self::AboutMeAuth
            | Self::Logo => Method::GET,
        }
    }

    /// Returns the page at `path`, or `None` if there is none.
    pub fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|page| page.path() == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_found_at_its_own_place_and_path() {
        for page in Page::ALL {
            assert_eq!(Page::ALL[page.index()], page);
            assert_eq!(Page::at(page.path()), Some(page));
        }
        assert_eq!(Page::at("/PHP/viewitem.php"), None);
    }
}
