//! Parses the address and the form of a request, before the request may enter the queue.
//!
//! Everything that a client sends is bounded and checked here, so that later code has only typed
//! values.

use bywash_site::{Form, Refusal};

use crate::Page;
use crate::action::{Action, StaticPage};
use crate::fixtures::{KINDS, REGIONS};

/// The maximum number of items on one page of a list.
const MAX_LISTED: i64 = 100;
/// The default number of items on one page of a list, as in `RUBiS`.
const LISTED: i64 = 20;
/// The largest page number of a list that may be requested.
const MAX_PAGE: i64 = 100_000;
/// The maximum amount of money in a form, in hundredths of the currency unit.
const MAX_CENTS: i64 = 100_000_000_000;
/// The maximum number of pieces of one item.
const MAX_QUANTITY: i64 = 10_000;
/// The maximum duration of an item's auction, in days.
const MAX_DAYS: i64 = 365;

/// The operation that a request asks of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Shows a page that is the same for every visitor, without the database.
    Static(StaticPage),
    /// Shows the form that asks for nickname and password before an action.
    Auth {
        action: Action,
        item: i64,
    },
    Categories {
        region: Option<i64>,
        sells: bool,
    },
    Regions,
    Search(Search),
    Item(i64),
    User(i64),
    Bids(i64),
    SellForm {
        category: i64,
    },
    AboutMe(Credentials),
    /// Shows the form for the details of an action.
    Form {
        action: Action,
        credentials: Credentials,
        item: i64,
    },
    StoreBuyNow {
        credentials: Credentials,
        item: i64,
        quantity: i64,
    },
    StoreBid {
        credentials: Credentials,
        item: i64,
        bid: i64,
    },
    StoreComment {
        credentials: Credentials,
        item: i64,
        to: i64,
        rating: i64,
        words: String,
    },
    RegisterItem {
        credentials: Credentials,
        sale: Sale,
    },
    RegisterUser {
        credentials: Credentials,
        region: i64,
    },
}

/// A search for the items of a category, everywhere or in one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Search {
    pub(crate) category: i64,
    pub(crate) region: Option<i64>,
    pub(crate) page: i64,
    pub(crate) listed: i64,
}

/// The nickname and password that a client sends. They are checked in the database.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) nickname: String,
    pub(crate) password: String,
}

impl std::fmt::Debug for Credentials {
    /// Formats the nickname only, so that the password never appears in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Credentials").field(&self.nickname).finish()
    }
}

/// An item that a user puts on sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sale {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) category: i64,
    pub(crate) initial: i64,
    pub(crate) buy_now: i64,
    pub(crate) quantity: i64,
    pub(crate) days: i64,
}

impl Operation {
    pub(crate) fn read(
        page: Page,
        head: &http::request::Parts,
        body: &[u8],
    ) -> Result<Self, Refusal> {
        let form = Fields(Form::read(head.uri.query().unwrap_or_default(), body));
        let item = || form.number("itemId", 1, i64::MAX, ITEM);
        Ok(match page {
            Page::Home => Self::Static(StaticPage::Home),
            Page::Register => Self::Static(StaticPage::Register),
            Page::Browse => Self::Static(StaticPage::Browse),
            Page::Sell => Self::Static(StaticPage::Sell),
            Page::AboutMeAuth => Self::Static(StaticPage::AboutMe),
            Page::Logo => Self::Static(StaticPage::Logo),
            Page::BuyNowAuth => Self::Auth { action: Action::Buy, item: item()? },
            Page::PutBidAuth => Self::Auth { action: Action::Bid, item: item()? },
            Page::PutCommentAuth => Self::Auth { action: Action::Comment, item: item()? },
            Page::BrowseCategories => Self::Categories {
                region: form.0.get("region").map(|_| form.region()).transpose()?,
                sells: form.0.get("sell").is_some(),
            },
            Page::BrowseRegions => Self::Regions,
            Page::SearchItemsByCategory => Self::Search(form.search(None)?),
            Page::SearchItemsByRegion => Self::Search(form.search(Some(form.region()?))?),
            Page::ViewItem => Self::Item(item()?),
            Page::ViewUserInfo => Self::User(form.user("userId")?),
            Page::ViewBidHistory => Self::Bids(item()?),
            Page::SellItemForm => Self::SellForm { category: form.category()? },
            Page::AboutMe => Self::AboutMe(form.credentials()?),
            Page::BuyNow => {
                Self::Form { action: Action::Buy, credentials: form.credentials()?, item: item()? }
            }
            Page::PutBid => {
                Self::Form { action: Action::Bid, credentials: form.credentials()?, item: item()? }
            }
            Page::PutComment => Self::Form {
                action: Action::Comment,
                credentials: form.credentials()?,
                item: item()?,
            },
            Page::StoreBuyNow => Self::StoreBuyNow {
                credentials: form.credentials()?,
                item: item()?,
                quantity: form.quantity()?,
            },
            Page::StoreBid => {
                let bid = form.cents("bid", BID)?.filter(|bid| *bid > 0).ok_or(BID)?;
                Self::StoreBid { credentials: form.credentials()?, item: item()?, bid }
            }
            Page::StoreComment => Self::StoreComment {
                credentials: form.credentials()?,
                item: item()?,
                to: form.user("to")?,
                rating: form.number("rating", -5, 5, RATING)?,
                words: form.words("comment", 1_000, COMMENT)?,
            },
            Page::RegisterItem => {
                Self::RegisterItem { credentials: form.credentials()?, sale: form.sale()? }
            }
            Page::RegisterUser => {
                let credentials = form.credentials()?;
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if !credentials.nickname.chars().all(plain) {
                    return Err(NICKNAME);
                }
                Self::RegisterUser { credentials, region: form.region()? }
            }
        })
    }
}

const ITEM: Refusal = Refusal::Invalid("itemId must be the number of an item");
const USER: Refusal = Refusal::Invalid("userId (or to) must be the number of a user");
const CATEGORY: Refusal = Refusal::Invalid("category must be from 1 to 20");
const REGION: Refusal = Refusal::Invalid("region must be from 1 to 62");
const PAGE: Refusal = Refusal::Invalid("page must be from 0 to 100000, nbOfItems from 1 to 100");
const QUANTITY: Refusal = Refusal::Invalid("qty must be from 1 to 10000");
const BID: Refusal = Refusal::Invalid("bid must be an amount above 0, as in 12 or 12.50");
const PRICE: Refusal =
    Refusal::Invalid("initialPrice and buyNow must be amounts, as in 12 or 12.50");
const RATING: Refusal = Refusal::Invalid("rating must be from -5 to 5");
const DAYS: Refusal = Refusal::Invalid("duration must be from 1 to 365 days");
const COMMENT: Refusal =
    Refusal::Invalid("comment must be 1 to 1000 characters without control characters");
const NAME: Refusal =
    Refusal::Invalid("name must be 1 to 100 characters without control characters");
const DESCRIPTION: Refusal =
    Refusal::Invalid("description must be 1 to 2000 characters without control characters");
const CREDENTIALS: Refusal = Refusal::Invalid(
    "nickname and password must each be 1 to 30 characters without control characters",
);
const NICKNAME: Refusal =
    Refusal::Invalid("nickname must have only letters from A to Z, digits, - and _");

struct Fields(Form);

impl Fields {
    fn number(&self, name: &str, least: i64, most: i64, wrong: Refusal) -> Result<i64, Refusal> {
        let is_plain = |text: &&str| {
            let digits = text.strip_prefix('-').unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let number = self.0.get(name).filter(is_plain).and_then(|text| text.parse().ok());
        number.filter(|number| (least..=most).contains(number)).ok_or(wrong)
    }

    /// Reads a number like [`Fields::number`], with the default `usual` if the form has no such
    /// field.
    fn number_or(
        &self,
        name: &str,
        usual: i64,
        (least, most): (i64, i64),
        wrong: Refusal,
    ) -> Result<i64, Refusal> {
        self.0.get(name).map_or(Ok(usual), |_| self.number(name, least, most, wrong))
    }

    fn user(&self, name: &str) -> Result<i64, Refusal> {
        self.number(name, 1, i64::MAX, USER)
    }

    fn category(&self) -> Result<i64, Refusal> {
        self.number("category", 1, KINDS, CATEGORY)
    }

    fn region(&self) -> Result<i64, Refusal> {
        self.number("region", 1, REGIONS, REGION)
    }

    fn quantity(&self) -> Result<i64, Refusal> {
        self.number_or("qty", 1, (1, MAX_QUANTITY), QUANTITY)
    }

    fn search(&self, region: Option<i64>) -> Result<Search, Refusal> {
        Ok(Search {
            category: self.category()?,
            region,
            page: self.number_or("page", 0, (0, MAX_PAGE), PAGE)?,
            listed: self.number_or("nbOfItems", LISTED, (1, MAX_LISTED), PAGE)?,
        })
    }

    /// Reads a text of 1 to `most` characters that a person has written. Ends of lines and tabs
    /// become spaces. Other control characters are refused with `wrong`: no page has them, and
    /// PostgreSQL does not accept a zero byte.
    fn words(&self, name: &str, most: usize, wrong: Refusal) -> Result<String, Refusal> {
        let text = self.0.get(name).unwrap_or_default().replace(['\r', '\n', '\t'], " ");
        let text = text.trim();
        let fits = (1..=most).contains(&text.chars().count());
        if fits && !text.chars().any(char::is_control) { Ok(text.to_owned()) } else { Err(wrong) }
    }

    fn credentials(&self) -> Result<Credentials, Refusal> {
        let [nickname, password] =
            ["nickname", "password"].map(|name| self.words(name, 30, CREDENTIALS));
        Ok(Credentials { nickname: nickname?, password: password? })
    }

    fn sale(&self) -> Result<Sale, Refusal> {
        Ok(Sale {
            name: self.words("name", 100, NAME)?,
            description: self.words("description", 2_000, DESCRIPTION)?,
            category: self.category()?,
            initial: self.cents("initialPrice", PRICE)?.ok_or(PRICE)?,
            buy_now: self.cents("buyNow", PRICE)?.unwrap_or(0),
            quantity: self.quantity()?,
            days: self.number_or("duration", 7, (1, MAX_DAYS), DAYS)?,
        })
    }

    /// Reads an amount of money, in hundredths, that is written with two decimals or none. Returns
    /// `None` if the field is missing or empty, and `wrong` if it is invalid.
    fn cents(&self, name: &str, wrong: Refusal) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.0.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let (whole, rest) = text.split_once('.').unwrap_or((text, "00"));
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty()
            || whole.len() > 12
            || rest.len() != 2
            || !is_plain(whole)
            || !is_plain(rest)
        {
            return Err(wrong);
        }
        let cents = format!("{whole}{rest}").parse().ok();
        cents.filter(|cents| *cents <= MAX_CENTS).map(Some).ok_or(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(page: Page, query: &str) -> Result<Operation, Refusal> {
        let target = format!("{}?{query}", page.path());
        let head = http::Request::builder().uri(target).body(()).unwrap().into_parts().0;
        Operation::read(page, &head, b"")
    }

    #[test]
    fn a_search_has_a_category_and_a_page() {
        let search = Search { category: 3, region: None, page: 0, listed: 20 };
        let by_category = |query| operation(Page::SearchItemsByCategory, query);
        assert_eq!(by_category("category=3&categoryName=x"), Ok(Operation::Search(search)));
        let by_region =
            operation(Page::SearchItemsByRegion, "category=3&region=62&page=2&nbOfItems=5");
        let search = Search { region: Some(62), page: 2, listed: 5, ..search };
        assert_eq!(by_region, Ok(Operation::Search(search)));
        for (query, wrong) in [
            ("", CATEGORY),
            ("category=0", CATEGORY),
            ("category=21", CATEGORY),
            ("category=+3", CATEGORY),
            ("category=3&page=-1", PAGE),
            ("category=3&page=", PAGE),
            ("category=3&nbOfItems=101", PAGE),
            ("category=3&page=99999999999999999999", PAGE),
        ] {
            assert_eq!(by_category(query), Err(wrong), "{query}");
        }
    }

    #[test]
    fn money_is_whole_hundredths() {
        let bid = |amount: &str| {
            operation(Page::StoreBid, &format!("nickname=a&password=b&itemId=1&bid={amount}"))
        };
        let is = |wanted| move |operation: &Operation| matches!(operation, Operation::StoreBid { bid, .. } if *bid == wanted);
        assert!(bid("12").as_ref().is_ok_and(is(1200)));
        assert!(bid("12.50").as_ref().is_ok_and(is(1250)));
        for wrong in [
            "",
            "0",
            "-1",
            "1.5",
            "1.505",
            ".50",
            "1e3",
            "NaN",
            "1,50",
            "1000000000.01",
            "9999999999999",
        ] {
            assert_eq!(bid(wrong), Err(BID), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let shown = format!("{:?}", operation(Page::AboutMe, "nickname=ann&password=secret"));
        assert!(shown.contains("ann") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn what_people_write_is_bounded_and_plain() {
        let comment = |words: &str| {
            let credentials = "nickname=a&password=b&itemId=1&to=2&rating=-5";
            operation(Page::StoreComment, &format!("{credentials}&comment={words}"))
        };
        let two_lines = comment("a%0D%0Ab");
        assert!(
            two_lines.is_ok_and(
                |operation| matches!(operation, Operation::StoreComment { words, .. } if words == "a  b")
            )
        );
        for wrong in ["", "+", "%00", "%1b[2J", &"x".repeat(1_001)] {
            assert_eq!(comment(wrong), Err(COMMENT), "{wrong}");
        }
        for wrong in ["a%20b", "%3Cb%3E", "a%2Fb"] {
            let query = format!("nickname={wrong}&password=b&region=1");
            assert_eq!(operation(Page::RegisterUser, &query), Err(NICKNAME), "{wrong}");
        }
    }
}
