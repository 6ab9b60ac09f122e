//! Tests that visit every page of the site once.

use std::io::{Read, Write};
use std::net::TcpStream;

use bywash_auction::{CATEGORIES, Page, nickname, password};

use crate::site::{SIZES, each, number};

#[test]
fn every_page_can_be_walked_to_and_is_counted() {
    each(|site| {
        for page in
            ["/", "/PHP/register.html", "/PHP/browse.html", "/PHP/sell.html", "/PHP/about_me.html"]
        {
            assert_eq!(site.get(page).status, 200, "{page}");
        }
        let seller = site.person();
        let item = site.item(&seller, "buyNow=30&qty=3");
        let on = format!("itemId={item}");
        for (page, words) in [
            ("BrowseCategories.php", "SearchItemsByCategory.php?category=20"),
            ("BrowseCategories.php?region=7", "SearchItemsByRegion.php?region=7&amp;category=20"),
            ("BrowseCategories.php?sell=1", "SellItemForm.php?category=20"),
            ("BrowseRegions.php", "BrowseCategories.php?region=62"),
            ("SearchItemsByCategory.php?category=20&page=0", "ViewItem.php?itemId="),
            ("SearchItemsByRegion.php?category=20&region=7&page=0", "ViewItem.php?itemId="),
            (&format!("ViewItem.php?{on}"), "buy now for 30.00"),
            (&format!("ViewBidHistory.php?{on}"), "Bids on Thing"),
            (&format!("BuyNowAuth.php?{on}"), "/PHP/BuyNow.php"),
            (&format!("PutBidAuth.php?{on}"), "/PHP/PutBid.php"),
            (&format!("PutCommentAuth.php?{on}"), "/PHP/PutComment.php"),
            ("SellItemForm.php?category=3", "initialPrice"),
            ("ViewUserInfo.php?userId=1", &nickname(1)),
        ] {
            let reply = site.get(&format!("/PHP/{page}"));
            assert_eq!(reply.status, 200, "{page}: {}", reply.body);
            assert!(reply.body.contains(words), "{page}: {}", reply.body);
        }
        let visitor = format!("nickname={}&password={}&{on}", nickname(3), password(3));
        let to = number(&site.item_page(item), "userId=");
        for (page, rest, words) in [
            ("BuyNow", String::new(), "name=\"qty\""),
            ("PutBid", String::new(), "name=\"bid\""),
            ("PutComment", String::new(), "name=\"comment\""),
            ("StoreBid", "&bid=10.50".to_owned(), "the highest now"),
            ("StoreBuyNow", "&qty=2".to_owned(), "yours"),
            ("StoreComment", format!("&to={to}&rating=4&comment=%3Cb%3Egood"), "stored"),
            ("AboutMe", String::new(), "Thing</a>: 10.50"),
        ] {
            let reply = site.post(page, &format!("{visitor}{rest}"));
            assert_eq!(reply.status, 200, "{page}: {}", reply.body);
            assert!(reply.body.contains(words), "{page}: {}", reply.body);
        }
        let seen = site.get(&format!("/PHP/ViewUserInfo.php?userId={to}")).body;
        assert!(seen.contains("rated 4 in 1 comments") && seen.contains("&lt;b&gt;good"), "{seen}");
        assert_eq!(site.auction.stats().page(Page::StoreBid).received, 1);
    });
}

#[test]
fn a_list_goes_on_until_it_ends() {
    each(|site| {
        let (mut seen, mut next) =
            (Vec::new(), Some("/PHP/SearchItemsByCategory.php?category=1&nbOfItems=3".to_owned()));
        while let Some(target) = next {
            let page = site.get(&target).body;
            for part in page.split("ViewItem.php?itemId=").skip(1) {
                seen.push(part.chars().take_while(char::is_ascii_digit).collect::<String>());
            }
            let link =
                page.split('"').find(|part| part.starts_with("/PHP/SearchItemsByCategory.php?"));
            next = link.map(|link| link.replace("&amp;", "&"));
        }
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert!(all > 3 && seen.len() == all, "{seen:?}");
    });
}

#[test]
fn generated_users_have_the_passwords_that_are_said() {
    each(|site| {
        for user in [1, SIZES.users] {
            let form = format!("nickname={}&password={}", nickname(user), password(user));
            assert_eq!(site.post("AboutMe", &form).status, 200, "{form}");
        }
        let category = site.get("/PHP/BrowseCategories.php").body;
        assert!(CATEGORIES.iter().all(|name| category.contains(name)), "{category}");
    });
}

#[test]
fn the_picture_is_one() {
    each(|site| {
        let mut stream = TcpStream::connect(site.auction.address()).unwrap();
        let request = "GET /PHP/RUBiS_logo.jpg HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let begin = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        assert!(bytes[..begin].windows(10).any(|ten| ten == b"image/jpeg"));
        assert!(bytes[begin..].starts_with(b"\xff\xd8") && bytes.ends_with(b"\xff\xd9"));
    });
}
