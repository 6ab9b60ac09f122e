//! Of which kind a request is: its template.
//!
//! A URL is no kind: `/item/17` and `/item/18` are one page, `/index.php?route=cart` and `/index.php?route=search` are two.
//! A [`Pattern`](bywash_engine::classify::Pattern) says which requests are of a kind, and its text is the kind's name; what an operator pins or
//! approves a rule for is written the same way. [`Templates`] learns them from what is asked for:
//!
//! - **Segments** of the path. What looks like a number, a hash, a date or a title is `*` at once (`shape`). Any
//!   other has a name of its own, until 32 of one place are known: from then on only those have that make much of it.
//! - **Parameters** count by name, whatever their order: `/search?q&page`. Of one place 16 sets have names; the
//!   rest is of the kind without parameters.
//! - **Routers**: a parameter's value that looks like a name, and makes much of it, stands in the template:
//!   `/index.php?route=product/search`. A word that people search for does not, as it makes little.
//!
//! *Much* is a twentieth of the requests of that place, or of their time, by eight clients or more.
//!
//! # What strangers can do
//!
//! Only what the application has answered well is learned ([`Asked::is_good`]): whoever asks for a million pages that are
//! not there changes no name. Who asks for a million that are there can have new pages of that place called `*` for as
//! long as that goes on and half an hour after; names that make much keep their place, and so do pins and the patterns
//! of rules. All that is remembered together is at most [`MOST`] entries of some 100 bytes.
//!
//! # What stays
//!
//! A name is taken back only when its place gets crowded, or when hardly anybody asks for it any more. Then
//! [`Templates::version`] changes, and [`Templates::now`] says what is called what. A pin holds whatever is learned.

mod choices;
mod learned;
mod shape;

pub use learned::{Asked, MOST, Templates};
