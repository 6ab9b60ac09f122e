//! Tests of the route names that are learned from requests.

use bywash_discover::template::{MOST, Sample, Templates};
use bywash_engine::classify::{BadPattern, Pattern};
use proptest::prelude::*;

fn learn(templates: &mut Templates, target: &str, client: u64) -> String {
    by(templates, target, client, client)
}

fn by(templates: &mut Templates, target: &str, client: u64, address: u64) -> String {
    templates.learn(&Sample {
        method: "GET",
        target,
        client,
        address,
        seconds: 0.01,
        is_good: true,
    })
}

/// Returns the route names of `targets`, after a thousand clients have each requested one of them,
/// in turn.
fn named(targets: &[&str]) -> Vec<String> {
    let mut templates = Templates::new(Vec::new());
    for client in 0..1000_u64 {
        let target = targets[client as usize % targets.len()];
        learn(&mut templates, &target.replace("{n}", &client.to_string()), client);
    }
    let now = |target: &&str| learn(&mut templates.clone(), &target.replace("{n}", "5"), 1);
    targets.iter().map(now).collect()
}

#[test]
fn applications_of_the_world_have_names_that_an_operator_knows() {
    for (targets, names) in [
        // The URLs of RUBiS.
        (
            &[
                "/PHP/ViewItem.php?itemId={n}",
                "/PHP/SearchItemsByCategory.php?category=3&page={n}",
                "/PHP/RUBiS_logo.jpg",
            ][..],
            &[
                "/PHP/ViewItem.php?itemId",
                "/PHP/SearchItemsByCategory.php?category&page",
                "/PHP/RUBiS_logo.jpg",
            ][..],
        ),
        // The URLs of WordPress, without and with permalinks.
        (&["/?p={n}", "/?s=red", "/?feed=rss2", "/"], &["/?p", "/?s=red", "/?feed=rss2", "/"]),
        (
            &[
                "/wp-json/wp/v2/posts/{n}?per_page=3",
                "/2024/03/{n}",
                "/wp-admin/admin-ajax.php?action=heartbeat",
                "/wp-includes/js/jquery.min.js?ver=6.{n}",
            ],
            &[
                "/wp-json/wp/v2/posts/*?per_page",
                "/*/*/*",
                "/wp-admin/admin-ajax.php?action=heartbeat",
                "/wp-includes/js/jquery.min.js?ver",
            ],
        ),
        // The URLs of OpenCart.
        (
            &[
                "/index.php?route=product/search&search=q{n}",
                "/index.php?route=checkout/cart",
                "/index.php?route=product/product&product_id={n}",
            ],
            &[
                "/index.php?route=product/search&search",
                "/index.php?route=checkout/cart",
                "/index.php?product_id&route=product/product",
            ],
        ),
        // The URLs of MediaWiki.
        (
            &[
                "/index.php?title=Special:Search&search=q{n}",
                "/wiki/Main_Page",
                "/api.php?action=query&list=search&srsearch=q{n}",
            ],
            &[
                "/index.php?search&title=Special:Search",
                "/wiki/Main_Page",
                "/api.php?action=query&list=search&srsearch",
            ],
        ),
        // A REST interface, assets with hashes, and endings of other paths.
        (
            &[
                "/api/users/{n}/orders/550e8400-e29b-41d4-a716-446655440000",
                "/_next/static/3f2a91bc{n}/main-3f2a91bc.js",
                "/item/{n}.html",
            ],
            &["/api/users/*/orders/*", "/_next/static/*/*.js", "/item/*.html"],
        ),
    ] {
        assert_eq!(named(targets), names, "{targets:?}");
    }
}

#[test]
fn a_place_with_many_names_calls_them_any_but_those_that_make_much() {
    let mut templates = Templates::new(Vec::new());
    let title = |n: u64| {
        let letters = |n: u64| (b'a' + (n % 26) as u8) as char;
        format!("/blog/{}{}{}-story", letters(n), letters(n / 26), letters(n / 676))
    };
    for n in 0..5000_u64 {
        learn(&mut templates, "/blog/archive", n);
        learn(&mut templates, &title(n), n);
    }
    assert_eq!(learn(&mut templates, &title(9), 1), "/blog/*");
    assert_eq!(learn(&mut templates, &title(4000), 1), "/blog/*");
    assert_eq!(learn(&mut templates, "/blog/archive", 1), "/blog/archive");
    assert_eq!(
        templates.now("/blog/caa-story"),
        "/blog/*",
        "what was called so is called otherwise"
    );
    assert!(templates.version() > 0);
}

#[test]
fn a_rare_page_that_takes_long_gets_a_name_also_where_there_are_many() {
    let mut templates = Templates::new(Vec::new());
    for n in 0..4000_u64 {
        let target = if n % 100 == 99 {
            "/blog/report".into()
        } else {
            format!(
                "/blog/{}-x",
                ["a", "b", "c", "d"][n as usize % 4].repeat(1 + n as usize / 4 % 30)
            )
        };
        let seconds = if target == "/blog/report" { 5.0 } else { 0.01 };
        templates.learn(&Sample {
            method: "GET",
            target: &target,
            client: n,
            address: n,
            seconds,
            is_good: true,
        });
    }
    assert_eq!(learn(&mut templates, "/blog/report", 1), "/blog/report");
}

#[test]
fn a_word_that_one_client_asks_for_again_and_again_does_not_route() {
    let mut templates = Templates::new(Vec::new());
    for n in 0..1000 {
        learn(&mut templates, "/search?q=shoes", 7);
        learn(&mut templates, &format!("/search?q=w{n}"), n);
    }
    assert_eq!(learn(&mut templates, "/search?q=shoes", 1), "/search?q");
}

#[test]
fn a_wanted_value_has_a_name_though_it_is_rare_but_not_by_one_address() {
    let wanted =
        |parameter: &str, value: &str| parameter == "route" && value.starts_with("checkout/");
    let (mut with, mut without) =
        (Templates::new(Vec::new()).wanting(wanted), Templates::new(Vec::new()));
    let letter = |n: u64| char::from(b'a' + (n % 8) as u8);
    // More different values than the list has room for.
    for n in 0..4000_u64 {
        let target = match n % 100 {
            99 => "/index.php?route=checkout/success".to_owned(),
            _ => format!("/index.php?route=product/{}{}", letter(n), letter(n / 8 % 5)),
        };
        learn(&mut without, &target, n);
        learn(&mut with, &target, n);
    }
    let success = "/index.php?route=checkout/success";
    assert_eq!(learn(&mut without, success, 1), "/index.php?route");
    assert_eq!(learn(&mut with, success, 1), success);
    for browser in 0..100 {
        by(&mut with, "/index.php?route=checkout/mine", browser, 7);
    }
    assert_eq!(learn(&mut with, "/index.php?route=checkout/mine", 7), "/index.php?route");
    for n in 0..4000_u64 {
        let target =
            format!("/index.php?route=checkout/{}{}{}", letter(n), letter(n / 8), letter(n / 64));
        by(&mut with, &target, n, 7);
    }
    assert_eq!(learn(&mut with, success, 1), success, "one address takes no name from others");
    assert!(with.entries() < 100, "{}", with.entries());
}

#[test]
fn pages_that_are_not_there_change_no_name() {
    let mut templates = Templates::new(Vec::new());
    let pages = ["/shop", "/cart", "/search?q"];
    for page in &pages {
        _ = learn(&mut templates, page, 1);
    }
    for n in 0..100_000_u64 {
        let target = format!("/x{}y?{n}", (b'a' + (n % 26) as u8) as char);
        templates.learn(&Sample {
            method: "GET",
            target: &target,
            client: n,
            address: n,
            seconds: 1.0,
            is_good: false,
        });
    }
    assert_eq!((templates.version(), templates.entries() < 10), (0, true));
    for page in &pages {
        assert_eq!(&learn(&mut templates, page, 1), page);
    }
}

#[test]
fn a_million_hostile_targets_cost_no_more_than_there_is_room_for() {
    let mut templates = Templates::new(Vec::new());
    for client in 0..200 {
        learn(&mut templates, "/shop", client);
        learn(&mut templates, "/cart", client);
    }
    let mut number = 0x1234_5678_u64;
    let mut letters = |most: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length = 1 + (number >> 40) % most;
        (0..length)
            .map(|i| (b'a' + ((number >> (i % 12 * 5)) % 26) as u8) as char)
            .collect::<String>()
    };
    for n in 0..1_000_000_u64 {
        let target = match n % 4 {
            0 => format!("/{}", letters(12)),
            1 => format!(
                "/{}/{}/{}/{}/{}",
                letters(3),
                letters(3),
                letters(3),
                letters(3),
                letters(3)
            ),
            2 => format!("/shop?{}={}&{}=1", letters(6), letters(9), letters(6)),
            _ => format!("/a/b/c/d/e/f/g/h/i/j/{}?a*=&=&?&&&%zz", letters(9)),
        };
        let client = n % 5;
        templates.learn(&Sample {
            method: "GET",
            target: &target,
            client,
            address: client,
            seconds: 0.01,
            is_good: true,
        });
        assert!(templates.entries() <= MOST);
    }
    assert_eq!(learn(&mut templates, "/unheard", 1), "/*", "new names wait");
    // After the attack, names are as before.
    for _ in 0..20 {
        templates.fade(0.5);
        for client in 0..20 {
            _ = learn(&mut templates, "/shop", client);
        }
    }
    assert!(templates.entries() < 50, "{}", templates.entries());
    assert_eq!(learn(&mut templates, "/shop", 1), "/shop");
}

#[test]
fn a_pattern_that_is_always_tracked_holds_whatever_is_learned_and_the_most_specific_first() {
    let always_track = ["/blog/**", "/blog/archive?page&...", "POST /cart/*"];
    let always_track = always_track.iter().map(|pattern| pattern.parse().expect(pattern)).collect();
    let mut templates = Templates::new(always_track);
    assert_eq!(learn(&mut templates, "/blog/a/b/c?x=1", 1), "/blog/**");
    assert_eq!(learn(&mut templates, "/blog/archive?page=2", 1), "/blog/archive?page&...");
    let asked = Sample {
        method: "POST",
        target: "/cart/17",
        client: 1,
        address: 1,
        seconds: 0.1,
        is_good: false,
    };
    assert_eq!(templates.learn(&asked), "POST /cart/*");
    assert_eq!(templates.now("/blog/**"), "/blog/**");
}

#[test]
fn methods_that_change_things_are_routes_of_their_own() {
    let mut templates = Templates::new(Vec::new());
    let mut asked = |method, target| {
        let (client, address) = (1, 1);
        templates.learn(&Sample { method, target, client, address, seconds: 0.1, is_good: true })
    };
    assert_eq!(asked("POST", "/cart?add"), "POST /cart?add");
    assert_eq!(asked("HEAD", "/cart"), "/cart");
    assert_eq!(asked("PURGE-1", "/cart"), "OTHER /**", "a method is capitals");
    assert_eq!(asked("GET", "no path"), "/*");
}

#[test]
fn a_pattern_says_which_requests_are_of_it() {
    for (pattern, is, is_not) in [
        (
            "/item/*",
            &["/item/1", "/item/", "/item/1?x=1&y=2"][..],
            &["/item", "/item/1/2", "/items/1", "item/1"][..],
        ),
        ("/item/*?", &["/item/1", "/item/1?"], &["/item/1?x"]),
        ("/a/**", &["/a/", "/a/b/c?x"], &["/a", "/b/a/"]),
        ("/*.js", &["/main.js"], &["/main.css", "/main.js/x"]),
        ("/s?b&a", &["/s?a=1&b=2", "/s?b&a&b"], &["/s?a=1", "/s?a&b&c", "/s"]),
        ("/s?a&...", &["/s?a", "/s?z&a"], &["/s", "/s?z"]),
        ("/i?route=x/y&q", &["/i?q=1&route=x/y"], &["/i?q=1&route=x/z", "/i?route=x/y"]),
        ("/l?id", &["/l?id[]=1&id[2]=4", "/l?id%5B%5D=7"], &["/l?ids=1"]),
        ("/", &["/"], &["//", "/a"]),
    ] {
        let read: Pattern = pattern.parse().expect(pattern);
        for target in is {
            assert!(read.matches("GET", target), "{pattern} {target}");
        }
        for target in is_not {
            assert!(!read.matches("GET", target), "{pattern} {target}");
        }
        assert!(read.matches("HEAD", is[0]) && !read.matches("POST", is[0]));
    }
    let post: Pattern = "POST /a".parse().expect("a pattern");
    assert!(post.matches("POST", "/a") && !post.matches("GET", "/a"));
}

#[test]
fn a_text_that_is_no_pattern_is_told_why() {
    for (text, why) in [
        ("", BadPattern::Path),
        ("item", BadPattern::Path),
        ("post /a", BadPattern::Method),
        (" /a", BadPattern::Method),
        ("/a b", BadPattern::Method),
        ("GET /a b", BadPattern::Character),
        ("/a#b", BadPattern::Character),
        ("/ä", BadPattern::Character),
        ("/a*", BadPattern::Star),
        ("/*a", BadPattern::Star),
        ("/*.a*", BadPattern::Star),
        ("/**/a", BadPattern::Rest),
        ("/**x", BadPattern::Rest),
        ("/a?=1", BadPattern::Parameter),
        ("/a?b&b", BadPattern::Parameter),
        ("/a?1&2&3&4&5&6&7&8&9", BadPattern::Parameter),
    ] {
        assert_eq!(text.parse::<Pattern>(), Err(why), "{text}");
    }
    assert_eq!(format!("/{}", "a".repeat(600)).parse::<Pattern>(), Err(BadPattern::Long));
}

#[test]
fn a_more_specific_pattern_is_greater() {
    let ranked = [
        "/**",
        "/**?",
        "/*",
        "/*.html",
        "/a/*",
        "/a/*?",
        "/a/b",
        "/a/b?x&...",
        "/a/b?x",
        "/a/b?x=1*",
        "/a/b?x=12*",
        "/a/b?x=1",
    ];
    let read: Vec<Pattern> = ranked.iter().map(|text| text.parse().expect(text)).collect();
    assert!(read.is_sorted(), "{read:?}");
}

#[test]
fn a_pattern_refines_another_that_matches_some_of_its_requests() {
    let read = |text: &str| text.parse::<Pattern>().expect(text);
    for (general, special) in [
        ("/*", "/cart"),
        ("/*", "/*.html"),
        ("/*.html", "/index.html"),
        ("/**", "/a/b/*?q"),
        ("/**", "/a/**"),
        ("/**", "/"),
        ("/a/**", "/a/b/c"),
        ("/search?q", "/search?q=shoes"),
        ("/index.php", "/index.php?route=cart"),
        ("/index.php?route=cart/*", "/index.php?route=cart/add"),
        ("/*", "/cart?id"),
        ("/*/b", "/a/*"),
        ("/*?q", "/search"),
        ("POST /*", "POST /cart"),
    ] {
        let (general, special) = (read(general), read(special));
        assert!(special.refines(&general), "{special} {general}");
        assert!(!general.refines(&special), "{general} {special}");
    }
    for (one, other) in [
        ("/*", "/*"),
        ("/*", "/cart/*"),
        ("/*.html", "/index.php"),
        ("/*.html", "/*.js"),
        ("/a/**", "/a"),
        ("/a/**", "/b/c"),
        ("/search?q", "/search?page&q"),
        ("/search?q=a", "/search?q=b"),
        ("/search?q&...", "/search?page"),
        ("/*", "POST /cart"),
    ] {
        let (one, other) = (read(one), read(other));
        assert!(!one.refines(&other) && !other.refines(&one), "{one} {other}");
    }
}

fn target() -> impl Strategy<Value = String> {
    let part = prop_oneof!["[a-z]{0,6}", "[0-9]{1,4}", "[a-z*%.;]{0,8}", "[a-z]{1,5}\\.(js|html)"];
    let pair = prop_oneof!["[a-z]{1,3}", "[a-z]{1,3}=[a-zA-Z0-9/:%]{0,9}", "[a-z\\[\\]=&.]{0,6}"];
    let path = prop::collection::vec(part, 1..11).prop_map(|parts| format!("/{}", parts.join("/")));
    (path, prop::option::of(prop::collection::vec(pair, 0..10))).prop_map(|(path, query)| {
        query.map_or(path.clone(), |pairs| format!("{path}?{}", pairs.join("&")))
    })
}

proptest! {
    /// Checks that the name of a request is a valid pattern in its normal notation, and that it
    /// matches the request.
    #[test]
    fn a_name_is_a_pattern_of_what_is_called_so(targets in prop::collection::vec(target(), 1..60)) {
        let mut templates = Templates::new(Vec::new());
        for (client, target) in targets.iter().enumerate() {
            learn(&mut templates, target, client as u64);
        }
        for target in &targets {
            let name = learn(&mut templates, target, 1);
            let pattern: Pattern = name.parse().map_err(|why| TestCaseError::fail(format!("{name}: {why:?}")))?;
            prop_assert_eq!(&pattern.to_string(), &name);
            prop_assert!(pattern.matches("GET", target), "{} {}", name, target);
            prop_assert_eq!(templates.now(&name), name.clone());
        }
    }
}
