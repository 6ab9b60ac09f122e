//! The pages of a site, the walk of visitors through them, and the elephants among them.

/// The next step of a visitor after a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    Page(usize),
    /// The visitor returns to the previous page.
    Back,
    /// The session ends, and another one begins.
    End,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    pub(super) next: Vec<(Next, f64)>,
    /// The index of the picture that the page contains; `None` without a picture. A browser loads
    /// the picture in nine of ten cases.
    pub(super) companion: Option<usize>,
    /// The mean database time of a request for the page, in seconds.
    pub(super) cost: f64,
}

/// A simulated site; see the [module](super).
#[derive(Clone, Debug)]
pub struct Site {
    pub(super) pages: Vec<Page>,
    /// The pages with which sessions begin, each with its weight.
    pub(super) homes: Vec<(usize, f64)>,
    /// The two pages that use the database most. The first causes 70 % of the database time, the
    /// second 30 %.
    pub elephants: [usize; 2],
}

/// The database time of a request for a page that is not an elephant, in seconds.
pub(super) const ANT: f64 = 0.0002;
/// The number of pages in a flow, the sequence of pages that a visitor follows.
const FLOW: usize = 8;
/// The position of the search page in a flow. The search's picture follows it.
const SEARCH: usize = 3;
/// The index of the flow with the rare elephant. About one visitor in fifty visits it.
const RARE: usize = 7;

/// The transition table of `RUBiS`, as its authors published it.
const AUCTION: &str = include_str!("../../../../../papers/5-selfman/auction.csv");

impl Site {
    /// Returns the auction site of paper 5: 27 pages, and a logo that is loaded with each search.
    ///
    /// # Panics
    ///
    /// Never panics, because the transition table is part of the program.
    pub fn auction() -> Self {
        let mut names: Vec<&str> = Vec::new();
        let mut pages: Vec<Page> = Vec::new();
        let lines = AUCTION.lines().filter(|line| !line.starts_with('#'));
        let mut steps = Vec::new();
        for line in lines {
            let mut fields = line.split(',');
            let mut next = || fields.next().expect("a line of the built-in table has three fields");
            let (from, to, weight) = (next(), next(), next().parse::<f64>().expect("a number"));
            if !names.contains(&from) {
                names.push(from);
            }
            steps.push((from, to, weight));
        }
        pages.resize_with(names.len() + 1, Page::default);
        let of = |name: &str| {
            names.iter().position(|known| *known == name).expect("every page has a next page")
        };
        for (from, to, weight) in steps {
            let next = match to {
                "(back)" => Next::Back,
                "(end)" => Next::End,
                page => Next::Page(of(page)),
            };
            pages[of(from)].next.push((next, weight));
        }
        let elephants = [of("SearchItemsInCategory"), of("SearchItemsInRegion")];
        for page in elephants {
            pages[page].companion = Some(names.len());
        }
        Self { pages, homes: vec![(of("Home"), 1.0)], elephants }
    }

    /// Returns a site with `urls` pages in flows (sequences) of eight pages. The popularity of the
    /// flows follows Zipf's law.
    pub fn flows(urls: usize) -> Self {
        let flows = urls / FLOW;
        let mut pages: Vec<Page> = Vec::new();
        pages.resize_with(flows * FLOW, Page::default);
        for flow in 0..flows {
            let page = |at: usize| flow * FLOW + at;
            for at in (0..FLOW).filter(|at| *at != SEARCH + 1) {
                let on = if at == SEARCH { at + 2 } else { at + 1 };
                let next = if on < FLOW { Next::Page(page(on)) } else { Next::End };
                pages[page(at)].next.push((next, 1.0));
            }
            pages[page(SEARCH)].companion = Some(page(SEARCH + 1));
        }
        let homes = (0..flows).map(|flow| (flow * FLOW, 1.0 / (flow + 1) as f64)).collect();
        let elephants = [SEARCH, RARE.min(flows - 1) * FLOW + SEARCH];
        Self { pages, homes, elephants }
    }

    /// Returns the total number of pages and pictures.
    pub fn urls(&self) -> usize {
        self.pages.len()
    }

    /// Returns the mean database time of a request for `page`, in seconds.
    pub fn cost(&self, page: usize) -> f64 {
        self.pages[page].cost
    }

    /// Sets the database time of each page. `rates` has the share of each page in all requests, and
    /// `mean` is the mean database time of a request in seconds.
    pub(super) fn price(&mut self, rates: &[f64], mean: f64) {
        for page in &mut self.pages {
            page.cost = ANT;
        }
        let pictures: Vec<usize> = self.pages.iter().filter_map(|page| page.companion).collect();
        for picture in pictures {
            self.pages[picture].cost = 0.0;
        }
        self.elephants.iter().for_each(|page| self.pages[*page].cost = 0.0);
        let ants: f64 = self.pages.iter().zip(rates).map(|(page, rate)| page.cost * rate).sum();
        for (elephant, share) in self.elephants.into_iter().zip([0.7, 0.3]) {
            self.pages[elephant].cost = share * (mean - ants) / rates[elephant];
        }
    }
}
