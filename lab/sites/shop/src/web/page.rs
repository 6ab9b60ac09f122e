//! Creates the shop's pages. A page takes little CPU time to create, and is complete enough to use
//! the shop in a browser.

use std::fmt::Write;

use crate::Stage;
use crate::store::{Page, Product};

const FOOT: &str = r#"<hr><p><a href="/">main</a> <a href="/browse">browse</a></p>
<form action="/search"><input name="q"><button>search</button></form>
<form method="post" action="/login"><input name="name"><button>log in</button></form>
<form method="post" action="/shipping"><input name="address"><button>ship to</button></form>
<form method="post" action="/payment"><input name="reference"><button>pay with</button></form>
<form method="post" action="/confirm"><button>confirm</button></form>
"#;

/// Returns the title of the page of a stage.
pub(super) const fn title(stage: Stage) -> &'static str {
    match stage {
        Stage::Main => "Welcome",
        Stage::Browse => "Browse",
        Stage::Search => "Found",
        Stage::Details => "In your cart",
        Stage::Login => "Logged in",
        Stage::Shipping => "Shipping",
        Stage::Payment => "Payment",
        Stage::Confirm => "Thank you",
    }
}

/// Returns the whole HTML document of a page.
pub(super) fn render(title: &str, page: &Page) -> String {
    let body = match page {
        Page::Shelf(products) => shelf(products),
        Page::Details(product) => details(product),
        Page::LoggedIn => "<p>Next: where shall it go?</p>".to_owned(),
        Page::AddressKept => "<p>Next: how do you pay?</p>".to_owned(),
        Page::PaymentKept => "<p>Next: confirm your order.</p>".to_owned(),
        Page::Ordered(receipt) => {
            format!("<p>Order {} over {} is placed.</p>", receipt.number, receipt.total)
        }
    };
    format!("<!doctype html><title>{title}</title><h1>{title}</h1>\n{body}\n{FOOT}")
}

fn shelf(products: &[Product]) -> String {
    let mut list = String::from("<ul>");
    for Product { id, name, price, .. } in products {
        // Writing to a string cannot fail.
        let _ = write!(list, "\n<li><a href=\"/details?id={id}\">{name}</a> {price}</li>");
    }
    list + "\n</ul>"
}

fn details(product: &Product) -> String {
    let Product { name, category, price, .. } = product;
    format!("<p>{name} at {price}, in <a href=\"/browse?category={category}\">{category}</a></p>")
}
