//! The templates of URLs, which give each request its route.
//!
//! A URL is not a route: `/item/17` and `/item/18` are one page, `/index.php?route=cart` and
//! `/index.php?route=search` are two. A [`Pattern`](bywash_engine::classify::Pattern) selects the
//! requests of a route, and its text is the route's name. The patterns of `elephants.always_track`
//! and of approved rules have the same syntax. A *place* is a point in the tree of paths, or a
//! parameter there. [`Templates`] learns the patterns from requests:
//!
//! - **Segments** of the path. A segment that looks like a number, a hash, a date or a title is `*`
//!   immediately (`shape`). Any other segment has a name of its own until 32 segments of one place
//!   are known. From then on only those keep a name that account for much of the place.
//! - **Parameters** count by name, whatever their order: `/search?q&page`. At one place 16 sets of
//!   parameters have names. All others belong to the route without parameters.
//! - **Routing values**: a parameter's value that looks like a name and accounts for much of the
//!   place is part of the template: `/index.php?route=product/search`. A search term is not,
//!   because each accounts for little.
//!
//! *Much* means a twentieth of the requests of that place, or of their time, requested by eight
//! clients or more. A caller may want certain values by name even if they are rare
//! ([`Templates::wanting`]), such as those that name an order. For these, eight addresses are
//! enough.
//!
//! # Attacks
//!
//! Templates learn only from requests that the application has answered well ([`Sample::is_good`]).
//! Therefore requests for a million pages that do not exist change no name. A client that requests
//! a million pages that exist can cause new pages of that place to be named `*`, during the attack
//! and half an hour after it. Names that account for much keep their place, and so do the patterns
//! of `elephants.always_track` and of rules. Each parameter has a separate list of 32 wanted
//! values, so wanted values take no name from others. At most [`MOST`] entries of some 100 bytes
//! are remembered.
//!
//! # Stability
//!
//! A name is withdrawn only when its place gets crowded, or when it is rarely requested. Then
//! [`Templates::version`] changes, and [`Templates::now`] returns the present name for an earlier
//! one. A pattern that is always tracked stays, whatever is learned.

mod choices;
mod learned;
mod shape;

pub use learned::{MOST, Sample, Templates};
