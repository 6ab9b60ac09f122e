//! Renders the HTML pages. They are simple, and complete enough to use the site in a browser.

use std::fmt::Write;

use super::form::{escaped, form, hidden};
use crate::Page;
use crate::action::{Action, StaticPage};
use crate::store::{Account, Answer, Comment, Item, Listed, Named, Trade, User};

/// Returns the whole HTML document of an answer. Answers that are a line of text or a picture are
/// not rendered here.
pub(super) fn render(answer: &Answer) -> String {
    let body = match answer {
        Answer::Static(page) => static_page(*page),
        Answer::Auth { action, item } => {
            form(action.form(), &["nickname", "password", &format!("itemId={item}")])
        }
        Answer::Categories { categories, region, sells } => {
            categories_of(categories, *region, *sells)
        }
        Answer::Regions(regions) => {
            links(regions, &format!("{}?region=", Page::BrowseCategories.path()))
        }
        Answer::Found { items, next } => found(items, next.as_deref()),
        Answer::Item(item) => render_item(item),
        Answer::User { user, received } => render_user(user, received),
        Answer::Bids { item, bids } => {
            let list = trades(bids, Page::ViewUserInfo, "userId", true);
            format!("<p>Bids on {}</p>\n{list}", escaped(&item.name))
        }
        Answer::Form { action, credentials, item } => last(*action, &hidden(credentials), item),
        Answer::SellForm { category } => form(
            Page::RegisterItem,
            &[
                "nickname",
                "password",
                "name",
                "description",
                "initialPrice",
                "buyNow",
                "qty",
                "duration",
                &format!("category={category}"),
            ],
        ),
        Answer::AboutMe(account) => about(account),
        Answer::Done(words) => format!("<p>{words}</p>"),
        Answer::Missing(_) | Answer::Unauthenticated | Answer::Declined(_) => String::new(),
    };
    format!(
        "<!doctype html><title>Auction</title><p><img src=\"{}\" alt=\"\"> <a href=\"/\">home</a> <a href=\"{}\">browse</a> \
         <a href=\"{}\">sell</a> <a href=\"{}\">about me</a> <a href=\"{}\">register</a></p>\n{body}\n",
        Page::Logo.path(),
        Page::Browse.path(),
        Page::Sell.path(),
        Page::AboutMeAuth.path(),
        Page::Register.path()
    )
}

fn static_page(page: StaticPage) -> String {
    match page {
        StaticPage::Register => form(Page::RegisterUser, &["nickname", "password", "region"]),
        StaticPage::Browse => format!(
            "<p><a href=\"{}\">by category</a> <a href=\"{}\">by region</a></p>",
            Page::BrowseCategories.path(),
            Page::BrowseRegions.path()
        ),
        StaticPage::Sell => form(Page::BrowseCategories, &["sell=1"]),
        StaticPage::AboutMe => form(Page::AboutMe, &["nickname", "password"]),
        StaticPage::Home | StaticPage::Logo => "<h1>Auction</h1>".to_owned(),
    }
}

fn categories_of(categories: &[Named], region: Option<i64>, sells: bool) -> String {
    let to = match (sells, region) {
        (true, _) => format!("{}?category=", Page::SellItemForm.path()),
        (false, None) => format!("{}?category=", Page::SearchItemsByCategory.path()),
        (false, Some(region)) => {
            format!("{}?region={region}&amp;category=", Page::SearchItemsByRegion.path())
        }
    };
    links(categories, &to)
}

fn links(all: &[Named], to: &str) -> String {
    let mut list = String::from("<ul>");
    for Named { id, name } in all {
        // Writing to a string cannot fail.
        let _ = write!(list, "\n<li><a href=\"{to}{id}\">{}</a></li>", escaped(name));
    }
    list + "\n</ul>"
}

fn found(items: &[Listed], next: Option<&str>) -> String {
    let mut list = String::from("<ul>");
    for Listed { id, name, initial, highest, bidders } in items {
        let price = money(*highest.max(initial));
        let (page, name) = (Page::ViewItem.path(), escaped(name));
        let _ = write!(
            list,
            "\n<li><a href=\"{page}?itemId={id}\">{name}</a>, {price}, {bidders} bidders</li>"
        );
    }
    list += "\n</ul>";
    if let Some(next) = next {
        let _ = write!(list, "\n<p><a href=\"{}\">next page</a></p>", escaped(next));
    }
    list
}

fn render_item(item: &Item) -> String {
    let Item { id, seller, bid_count, quantity, .. } = item;
    let mut html = format!(
        "<h1>{}</h1>\n<p>{}</p>\n<p>{quantity} of <a href=\"{}?userId={seller}\">{}</a>'s, from {}. \
         <a href=\"{}?itemId={id}\">{bid_count} bids</a>, the highest {}.</p>\n",
        escaped(&item.name),
        escaped(&item.description),
        Page::ViewUserInfo.path(),
        escaped(&item.seller_name),
        money(item.initial),
        Page::ViewBidHistory.path(),
        money(item.highest)
    );
    if item.is_over {
        return html + "<p>The auction is over.</p>";
    }
    let _ = writeln!(html, "<p><a href=\"{}?itemId={id}\">bid</a></p>", Page::PutBidAuth.path());
    if item.buy_now > 0 {
        let (page, price) = (Page::BuyNowAuth.path(), money(item.buy_now));
        let _ = writeln!(html, "<p><a href=\"{page}?itemId={id}\">buy now for {price}</a></p>");
    }
    let page = Page::PutCommentAuth.path();
    html + &format!("<p><a href=\"{page}?itemId={id}\">comment on the seller</a></p>")
}

/// Returns the form for the details of an action, which is the last form before the action.
fn last(action: Action, [nickname, password]: &[String; 2], item: &Item) -> String {
    let (id, to) = (format!("itemId={}", item.id), format!("to={}", item.seller));
    let own: &[&str] = match action {
        Action::Bid => &["bid"],
        Action::Buy => &["qty"],
        Action::Comment => &[&to, "rating", "comment"],
    };
    let fields = [&[nickname.as_str(), password, &id][..], own].concat();
    format!("<h1>{}</h1>\n{}", escaped(&item.name), form(action.store(), &fields))
}

fn render_user(user: &User, received: &[Comment]) -> String {
    let User { nickname, region, rating, comments } = user;
    let mut html = format!(
        "<h1>{}</h1>\n<p>{}, rated {rating} in {comments} comments</p>\n<ul>",
        escaped(nickname),
        escaped(region)
    );
    for Comment { by, name, rating, words } in received {
        let (page, name, words) = (Page::ViewUserInfo.path(), escaped(name), escaped(words));
        let _ = write!(
            html,
            "\n<li>{rating}: {words} (<a href=\"{page}?userId={by}\">{name}</a>)</li>"
        );
    }
    html + "\n</ul>"
}

fn about(account: &Account) -> String {
    let Account { user, bids, sells, bought, received } = account;
    let list =
        |trades: &[Trade], is_money| self::trades(trades, Page::ViewItem, "itemId", is_money);
    format!(
        "{}\n<h2>Bids</h2>\n{}\n<h2>On sale</h2>\n{}\n<h2>Bought</h2>\n{}",
        render_user(user, received),
        list(bids, true),
        list(sells, true),
        list(bought, false)
    )
}

fn trades(trades: &[Trade], page: Page, parameter: &str, is_money: bool) -> String {
    let mut list = String::from("<ul>");
    for Trade { id, name, amount } in trades {
        let amount = if is_money { money(*amount) } else { amount.to_string() };
        let (page, name) = (page.path(), escaped(name));
        let _ = write!(list, "\n<li><a href=\"{page}?{parameter}={id}\">{name}</a>: {amount}</li>");
    }
    list + "\n</ul>"
}

/// Formats an amount in hundredths with two decimals. The amount must not be negative.
fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
