//! Renders the HTML pages. They are simple, and complete enough to use the store in a browser.

use std::fmt::Write;

use crate::books::{BOOKS, Book, CATEGORIES};
use crate::store::Page;

/// Returns the whole HTML document of a page. Answers that are only a line of text are not rendered
/// here.
pub(super) fn render(page: &Page) -> String {
    let (title, body) = match page {
        Page::Home(books) => ("Welcome", home(books)),
        Page::Shelf(books) => ("Browse", list(books)),
        Page::Found(books) => ("Found", list(books)),
        Page::Book { book, description, near } => {
            (book.title.as_str(), render_book(book, description, near))
        }
        Page::InCart { books } => ("In your cart", in_cart(*books)),
        Page::Ordered(receipt) => {
            let words =
                format!("<p>Order {} over {} is placed.</p>", receipt.number, receipt.total);
            ("Thank you", words)
        }
        Page::EmptyCart | Page::NoSuchBook | Page::NoSuchCategory => ("Nothing", String::new()),
    };
    format!(
        "<!doctype html><title>{title}</title><h1>{title}</h1>\n{body}\n<hr><p><a href=\"/\">home</a></p>\n\
         <form action=\"/search\"><input name=\"q\"><button>search</button></form>\n"
    )
}

fn home(books: &[Book]) -> String {
    let mut shelves = String::from("<p>");
    for category in CATEGORIES {
        // Writing to a string cannot fail.
        let _ = write!(shelves, "\n<a href=\"/browse?category={category}\">{category}</a>");
    }
    shelves + "\n</p>\n" + &list(books)
}

fn list(books: &[Book]) -> String {
    let mut list = String::from("<ul>");
    for Book { id, title, author, price, .. } in books {
        let _ =
            write!(list, "\n<li><a href=\"/book?id={id}\">{title}</a> by {author}, {price}</li>");
    }
    list + "\n</ul>"
}

fn render_book(book: &Book, description: &str, near: &[Book]) -> String {
    let Book { id, author, category, price, .. } = book;
    let sample = i64::from(BOOKS) + id;
    format!(
        "<img src=\"/file/{id}\" alt=\"\">\n<p>{description}</p>\n<p>{author}, {price}, in \
         <a href=\"/browse?category={category}\">{category}</a>, <a href=\"/file/{sample}\">a sample</a></p>\n\
         <form method=\"post\" action=\"/cart\"><input type=\"hidden\" name=\"id\" value=\"{id}\">\
         <button>add to cart</button></form>\n<h2>About the same</h2>\n{}",
        list(near)
    )
}

fn in_cart(books: i64) -> String {
    format!(
        "<p>Books in it: {books}.</p>\n<form method=\"post\" action=\"/buy\"><button>buy</button></form>"
    )
}
