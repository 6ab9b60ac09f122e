//! Tests of invalid and malicious requests.

use serde_json::Value;

use crate::client::Client;
use crate::site::each;

#[test]
fn bad_requests_are_told_what_is_wrong_and_are_not_queued() {
    each(|site| {
        let who = "nickname=user1&password=password1";
        let large = "x".repeat(70_000);
        for (method, page, form, status, words) in [
            ("GET", "/PHP/nowhere.php", "", 404, "no such page"),
            ("GET", "/PHP/StoreBid.php?itemId=1", "", 405, "another method"),
            ("POST", "/PHP/ViewItem.php?itemId=1", "", 405, "another method"),
            ("GET", "/PHP/ViewItem.php", "", 400, "itemId must be"),
            ("GET", "/PHP/ViewItem.php?itemId=1%00", "", 400, "itemId must be"),
            ("GET", "/PHP/ViewItem.php?itemId=1'--", "", 400, "itemId must be"),
            ("GET", "/PHP/ViewUserInfo.php?userId=99999999999999999999", "", 400, "userId"),
            ("GET", "/PHP/SearchItemsByCategory.php?category=21", "", 400, "category must be"),
            ("GET", "/PHP/SearchItemsByCategory.php?category=1&page=-1", "", 400, "page must be"),
            ("GET", "/PHP/SearchItemsByRegion.php?category=1", "", 400, "region must be"),
            ("POST", "/PHP/AboutMe.php", "nickname=%00&password=x", 400, "nickname and password"),
            ("POST", "/PHP/StoreBid.php", &format!("{who}&itemId=1&bid=1e9"), 400, "bid must be"),
            ("POST", "/PHP/StoreBuyNow.php", &format!("{who}&itemId=1&qty=0"), 400, "qty must be"),
            (
                "POST",
                "/PHP/StoreComment.php",
                &format!("{who}&itemId=1&to=1&rating=6&comment=x"),
                400,
                "rating",
            ),
            ("POST", "/PHP/RegisterItem.php", who, 400, "name must be"),
            (
                "POST",
                "/PHP/RegisterUser.php",
                "nickname=%3Cb%3E&password=x&region=1",
                400,
                "letters",
            ),
            ("POST", "/PHP/RegisterUser.php", &large, 413, "larger than 64 KiB"),
        ] {
            let reply = Client::new(site.auction.address()).exchange(method, page, "", form);
            assert_eq!(reply.status, status, "{method} {page}: {}", reply.body);
            assert!(reply.body.contains(words), "{method} {page}: {}", reply.body);
        }
        assert!(site.auction.stats().pages.values().all(|page| page.received == 0));
    });
}

#[test]
fn what_is_not_there_is_not_found_and_nobody_is_somebody_else() {
    each(|site| {
        let last = i64::MAX;
        for page in
            ["ViewItem.php?itemId=", "ViewBidHistory.php?itemId=", "ViewUserInfo.php?userId="]
        {
            assert_eq!(site.get(&format!("/PHP/{page}{last}")).status, 404, "{page}");
        }
        let who = "nickname=user1&password=password1";
        for (page, form, status) in [
            ("StoreBid", format!("{who}&itemId={last}&bid=5"), 404),
            ("StoreBuyNow", format!("{who}&itemId={last}"), 404),
            ("StoreComment", format!("{who}&itemId=1&to={last}&rating=1&comment=x"), 404),
            ("StoreComment", format!("{who}&itemId={last}&to=1&rating=1&comment=x"), 404),
            ("PutBid", format!("{who}&itemId={last}"), 404),
            ("AboutMe", "nickname=user1&password=password2".to_owned(), 403),
            ("AboutMe", "nickname=USER1&password=password1".to_owned(), 403),
            ("AboutMe", "nickname=x'+OR+'1'='1&password=x'+OR+'1'='1".to_owned(), 403),
            ("StoreBid", "nickname=user1&password=wrong&itemId=1&bid=99".to_owned(), 403),
        ] {
            let reply = site.post(page, &form);
            assert_eq!(reply.status, status, "{page} {form}: {}", reply.body);
        }
        let failed = |page: &bywash_auction::ServiceStats| page.failed == 0;
        assert!(site.auction.stats().pages.values().all(failed));
    });
}

#[test]
fn every_language_can_be_written_and_none_is_markup() {
    each(|site| {
        let seller = site.person();
        let sale = "description=%F0%9F%8E%BB+%D0%BA%D0%BD%D0%B8%D0%B3%D0%B0+%22%3E%3Cscript%3E&category=4&initialPrice=1";
        let form = format!("{}&name=%C3%A9%27%3B--&{sale}", seller.form());
        assert_eq!(site.post("RegisterItem", &form).status, 200);
        let page = site.post("AboutMe", &seller.form()).body;
        let page = site.item_page(crate::site::number(&page, "itemId="));
        assert!(page.contains("<h1>é&#39;;--</h1>"), "{page}");
        assert!(page.contains("🎻 книга &quot;&gt;&lt;script&gt;"), "{page}");
    });
}

#[test]
fn the_statistics_are_json_with_all_pages() {
    each(|site| {
        site.get("/PHP/BrowseRegions.php");
        let stats: Value = serde_json::from_str(&site.get("/-/stats").body).unwrap();
        assert_eq!(stats["pages"].as_object().unwrap().len(), bywash_auction::Page::ALL.len());
        assert_eq!(stats["pages"]["BrowseRegions"]["received"], 1);
        assert_eq!((&stats["workers"], &stats["backlog"]), (&4.into(), &511.into()));
        assert_eq!(stats["database"]["reachable"], true);
    });
}
