//! The product files: a cover and a text sample of each book. They are generated from the book's
//! number, without the database.

use std::fmt::Write;

use bywash_scenario::Stream;

use crate::books::{BOOKS, Book, below};

/// The total number of files: first a cover of each book, then a sample of each book.
pub const FILES: u32 = 2 * BOOKS;

/// The number of pages in a text sample.
const SAMPLE: u32 = 4;

/// The number of the random stream for a cover.
const FOR_COVER: u64 = 3;

/// A file to send to a client.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) kind: &'static str,
    pub(crate) content: String,
}

/// Returns the file with this number, from 1 to [`FILES`].
pub(crate) fn file(number: u32) -> File {
    if number <= BOOKS {
        File { kind: "image/svg+xml", content: cover(number) }
    } else {
        File { kind: bywash_site::HTML, content: sample(&Book::new(number - BOOKS)) }
    }
}

/// Returns the cover of a book: an SVG image of coloured stripes, about 4 KiB.
fn cover(number: u32) -> String {
    let mut rng = Stream::new(4, FOR_COVER, number.into());
    let mut svg = String::from(r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 180">"#);
    for row in 0..60 {
        let colour = below(1 << 24, &mut rng);
        // Writing to a string cannot fail.
        let _ = write!(
            svg,
            "\n<rect x=\"0\" y=\"{}\" width=\"120\" height=\"3\" fill=\"#{colour:06x}\"/>",
            row * 3
        );
    }
    svg + "\n</svg>\n"
}

fn sample(book: &Book) -> String {
    let mut html = format!("<!doctype html><title>{0}</title><h1>{0}</h1>", book.title);
    for page in 0..SAMPLE {
        let _ = write!(html, "\n<p>{}</p>", book.page(page));
    }
    html + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_book_has_a_cover_and_a_sample_of_some_kilobytes() {
        for (number, kind) in
            [(1, "image/svg+xml"), (BOOKS, "image/svg+xml"), (FILES, bywash_site::HTML)]
        {
            let file = file(number);
            assert_eq!(file.kind, kind, "{number}");
            assert!(
                (3_000..6_000).contains(&file.content.len()),
                "{number}: {}",
                file.content.len()
            );
        }
    }
}
