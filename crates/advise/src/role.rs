//! Guesses the purpose of a template from the words in it. The guesses are proposals: an operator
//! reads them before they apply.

use serde::Serialize;

/// The purpose of a route. A proposed class has the name of its role, never text from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The first page of the site.
    Home,
    /// A list of objects, and every page without another role.
    Browse,
    /// A page of one of many objects: its URL has a number or a title.
    Item,
    /// A search for objects.
    Search,
    /// The visitor's selection of objects to buy.
    Cart,
    /// The login of a visitor.
    Login,
    /// A step between the cart and the order.
    Checkout,
    /// The request that brings revenue.
    Order,
    /// A request by a program instead of a browser.
    Api,
    /// A static file.
    Static,
    /// Requests that no pattern can distinguish.
    Other,
}

impl Role {
    /// All roles, in the order in which proposed classes are shown.
    pub const ALL: [Self; 11] = [
        Self::Home,
        Self::Browse,
        Self::Item,
        Self::Search,
        Self::Cart,
        Self::Login,
        Self::Checkout,
        Self::Order,
        Self::Api,
        Self::Static,
        Self::Other,
    ];

    /// Returns the name of the role's class.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Browse => "browse",
            Self::Item => "item",
            Self::Search => "search",
            Self::Cart => "cart",
            Self::Login => "login",
            Self::Checkout => "checkout",
            Self::Order => "order",
            Self::Api => "api",
            Self::Static => "static",
            Self::Other => "other",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// Returns whether this part of a template's query determines the purpose of the page. Such a
    /// part is a value that selects the page, or a parameter name that indicates this role.
    pub(crate) fn is_named_by(self, part: &str) -> bool {
        let tells = match self {
            Self::Search => SEARCH_PARAMETERS.contains(&part),
            Self::Item => OBJECT_PARAMETERS.contains(&part),
            Self::Order => like_an_order(part) >= NAMES,
            _ => false,
        };
        part.contains('=') || tells
    }
}

const FILES: [&str; 33] = [
    "css",
    "js",
    "mjs",
    "map",
    "png",
    "jpg",
    "jpeg",
    "gif",
    "svg",
    "ico",
    "webp",
    "avif",
    "bmp",
    "woff",
    "woff2",
    "ttf",
    "otf",
    "eot",
    "mp3",
    "mp4",
    "webm",
    "ogg",
    "mov",
    "m4s",
    "ts",
    "m3u8",
    "wasm",
    "webmanifest",
    "txt",
    "swf",
    "cur",
    "less",
    "scss",
];
const SEARCH: [&str; 6] = ["search", "find", "suche", "suggest", "autocomplete", "recherche"];
const SEARCH_PARAMETERS: [&str; 6] = ["q", "query", "search", "s", "keyword", "keywords"];
/// The names of parameters that select one of many objects.
const OBJECT_PARAMETERS: [&str; 12] = [
    "id",
    "item",
    "itemId",
    "item_id",
    "product",
    "productId",
    "product_id",
    "article",
    "sku",
    "p",
    "pid",
    "isbn",
];
const CART: [&str; 6] = ["cart", "basket", "bag", "warenkorb", "panier", "trolley"];
const CHECKOUT: [&str; 9] = [
    "checkout", "shipping", "delivery", "payment", "pay", "billing", "kasse", "address", "onepage",
];
const LOGIN: [&str; 9] =
    ["login", "signin", "signup", "logon", "auth", "register", "oauth", "anmelden", "authenticate"];
const API: [&str; 7] = ["api", "graphql", "rest", "rpc", "ajax", "json", "xmlrpc"];
/// The words of a URL that can name an order, each with its probability. `order` alone often names
/// a step of a checkout, or a list of earlier orders.
const ORDER: [(&str, f64); 17] = [
    ("confirm", 1.0),
    ("confirmation", 1.0),
    ("placeorder", 1.0),
    ("purchase", 1.0),
    ("buy", 1.0),
    ("thankyou", 1.0),
    ("thanks", 0.9),
    ("complete", 0.9),
    ("success", 0.9),
    ("orderreceived", 0.9),
    ("order", 0.6),
    ("orders", 0.6),
    ("booking", 0.7),
    ("book", 0.5),
    ("pay", 0.6),
    ("payment", 0.6),
    ("checkout", 0.4),
];
/// The words that make a target with the word `order` the order itself, and the probability of
/// that.
const PLACES: ([&str; 3], f64) = (["place", "confirm", "create"], 0.8);
/// The words of a request that shows or changes an order without placing it, and the factor by
/// which such a word multiplies the score.
const NON_ORDER_WORDS: ([&str; 3], f64) = (["review", "update", "history"], 0.4);

/// The minimum score of words that name an order itself, and not only a step towards an order.
pub(crate) const NAMES: f64 = 0.7;

/// Returns whether a target is a file, by the extension of its path.
pub(crate) fn is_file(target: &str) -> bool {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let Some((_, ending)) = last.rsplit_once('.') else { return false };
    ending.len() <= 11 && FILES.iter().any(|file| ending.eq_ignore_ascii_case(file))
}

/// Returns whether a target is a PHP page: a segment of its path ends in `.php`. The rest of the
/// path may be an argument.
pub(crate) fn is_php(target: &str) -> bool {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    path.split('/')
        .filter_map(|segment| segment.rsplit_once('.'))
        .any(|(_, ending)| ending.eq_ignore_ascii_case("php"))
}

/// Returns whether a parameter's value names a step of a purchase, as in `route=checkout/success`.
/// Values of search parameters and campaign labels never do.
pub(crate) fn is_step(parameter: &str, value: &str) -> bool {
    let of_orders = ORDER.iter().map(|(word, _)| *word);
    let steps = CART.iter().chain(&CHECKOUT).chain(&LOGIN).copied().chain(of_orders);
    let is_page = !SEARCH_PARAMETERS.contains(&parameter) && !parameter.starts_with("utm_");
    is_page && words(value).any(|part| steps.clone().any(|word| is_word(part, word)))
}

/// Returns the purpose of a template, guessed from its words. It is never the order, which other
/// evidence decides.
pub(crate) fn role(template: &str, is_file: bool) -> Role {
    if is_file {
        return Role::Static;
    }
    let target = template.split_once(' ').map_or(template, |(_, target)| target);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let has = |list: &[&str]| has_word(target, list);
    if path.ends_with("**") {
        return Role::Other;
    }
    let is_first = matches!(path, "/" | "/index.html" | "/index.php" | "/home" | "/index.htm");
    let is_sought = query
        .split('&')
        .any(|one| SEARCH_PARAMETERS.contains(&one.split('=').next().unwrap_or("")));
    if is_first && query.is_empty() {
        Role::Home
    } else if has(&CHECKOUT) {
        Role::Checkout
    } else if has(&API) {
        Role::Api
    } else if has(&CART) {
        Role::Cart
    } else if has(&LOGIN) {
        Role::Login
    } else if has(&SEARCH) || is_sought {
        Role::Search
    } else if selects_object(query) || has_one_of_many(path) {
        Role::Item
    } else {
        Role::Browse
    }
}

/// Returns whether a query has a parameter that selects one of many objects.
fn selects_object(query: &str) -> bool {
    query
        .split('&')
        .any(|one| OBJECT_PARAMETERS.contains(&one.split('=').next().unwrap_or_default()))
}

/// Returns whether a path ends in a placeholder for one of many objects.
fn has_one_of_many(path: &str) -> bool {
    path.trim_end_matches('/').rsplit('/').next().is_some_and(|last| last.starts_with('*'))
}

/// Returns how strongly the words of a template suggest that it is the order, from 0 to 1.
pub(crate) fn like_an_order(template: &str) -> f64 {
    let target = template.split_once(' ').map_or(template, |(_, target)| target);
    let of =
        |(word, sure): &(&str, f64)| words(target).any(|part| is_word(part, word)).then_some(*sure);
    let alone = ORDER.iter().filter_map(of).fold(0.0, f64::max);
    let is_placed = has_word(target, &["order", "orders"]) && has_word(target, &PLACES.0);
    let sure = if is_placed { alone.max(PLACES.1) } else { alone };
    if has_word(target, &NON_ORDER_WORDS.0) { NON_ORDER_WORDS.1 * sure } else { sure }
}

/// Returns whether a target has one of the words in `list`.
fn has_word(target: &str, list: &[&str]) -> bool {
    words(target).any(|part| list.iter().any(|word| is_word(part, word)))
}

/// Returns the words of a path and a query. Both `placeOrder` and `place-order` give three words:
/// `place`, `order`, and the whole.
fn words(target: &str) -> impl Iterator<Item = &str> {
    let is_within = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let wholes =
        target.split(move |c: char| !is_within(c)).filter(|part| part.contains(['-', '_']));
    let parts = target.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    wholes.chain(parts.flat_map(|part| camel_case_parts(part).chain([part])))
}

/// Returns the parts of a word in camel case, such as `placeOrder`; none for any other word.
fn camel_case_parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    let parts = std::iter::from_fn(move || {
        let bytes = rest.as_bytes();
        let is_next =
            |at: &usize| bytes[*at].is_ascii_uppercase() && bytes[*at - 1].is_ascii_lowercase();
        let end = (1..bytes.len()).find(is_next).unwrap_or(bytes.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        (!part.is_empty()).then_some(part)
    });
    parts.filter(move |part| part.len() < word.len())
}

/// Returns whether a part of a target is this word, regardless of case, `-` and `_`.
fn is_word(part: &str, word: &str) -> bool {
    let letters = part.bytes().filter(|byte| !matches!(byte, b'-' | b'_'));
    letters.map(|byte| byte.to_ascii_lowercase()).eq(word.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_for_what_its_words_say() {
        let cases = [
            ("/", Role::Home),
            ("/index.php?route=checkout/cart", Role::Checkout),
            ("/index.php?q", Role::Search),
            ("POST /basket/add", Role::Cart),
            ("/account/login", Role::Login),
            ("/item/*", Role::Item),
            ("/*.html", Role::Item),
            ("/books", Role::Browse),
            ("/details?id", Role::Item),
            ("/a/**", Role::Other),
            ("/api/v1/*", Role::Api),
            ("/SearchItemsByCategory.php?category", Role::Search),
            ("/shippingOptions", Role::Checkout),
            ("/bookshipping2", Role::Browse),
            // A checkout keeps its role whether a browser or a program requests it.
            ("POST /api/checkout/onepage/addresses", Role::Checkout),
            ("POST /rest/default/V1/guest-carts/*/payment-information", Role::Checkout),
            ("POST /wp-json/wc/store/v1/checkout", Role::Checkout),
            ("POST /?wc-ajax=checkout", Role::Checkout),
            ("POST /wp-json/wc/store/v1/batch", Role::Api),
        ];
        for (template, expected) in cases {
            assert_eq!(role(template, false), expected, "{template}");
        }
        assert_eq!(role("/cart/icons/*.png", true), Role::Static);
    }

    #[test]
    fn a_file_is_told_by_its_ending() {
        for target in ["/a.css", "/x/y.JS?v=3", "/f.woff2"] {
            assert!(is_file(target), "{target}");
        }
        for target in ["/", "/a.php", "/a.css/b", "/css", "/a?b=.css", "/a.html"] {
            assert!(!is_file(target), "{target}");
        }
    }

    #[test]
    fn php_is_told_by_its_ending_anywhere_in_the_path() {
        for target in ["/index.php?route=a", "/a/b.PHP", "/index.php/shop/7", "/.php"] {
            assert!(is_php(target), "{target}");
        }
        for target in ["/", "/a?b=c.php", "/a.php5", "/php", "/é", "/a.phpx/b", "/a#b.php"] {
            assert!(!is_php(target), "{target}");
        }
    }

    #[test]
    fn a_value_is_a_step_by_the_words_of_roles_unless_it_is_text() {
        for (parameter, value) in [
            ("route", "checkout/success"),
            ("route", "common/shoppingCart"),
            ("action", "place-order"),
            ("page", "my_LOGIN"),
        ] {
            assert!(is_step(parameter, value), "{parameter}={value}");
        }
        for (parameter, value) in [
            ("route", "product/product"),
            ("route", "products/cartoons"),
            ("q", "payment"),
            ("utm_campaign", "abandoned-cart"),
            ("route", ""),
        ] {
            assert!(!is_step(parameter, value), "{parameter}={value}");
        }
    }

    #[test]
    fn words_of_an_order_are_more_or_less_sure() {
        assert!(like_an_order("POST /confirm") > like_an_order("POST /payment"));
        assert!(like_an_order("POST /placeOrder") > like_an_order("POST /checkout"));
        assert!(like_an_order("/checkout/thank-you/") > like_an_order("/checkout/preview/"));
        for named in ["POST /order/place", "POST /orders/create", "POST /confirmOrder"] {
            assert!(like_an_order(named) >= NAMES, "{named}");
        }
        for step in ["POST /order", "POST /api/orders", "POST /order/history/confirm"] {
            assert!(like_an_order(step) < NAMES, "{step}");
        }
        let review = like_an_order("POST /?wc-ajax=update_order_review");
        assert!(0.0 < review && review < like_an_order("POST /?wc-ajax=checkout"));
        assert!(like_an_order("POST /comment").abs() < f64::EPSILON);
    }
}
