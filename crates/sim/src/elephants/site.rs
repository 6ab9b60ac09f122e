//! Pages, how visitors walk through them, and which are elephants.

/// Where a visitor goes from a page, with a weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    Page(usize),
    /// To the page before.
    Back,
    /// The session is over, and another begins.
    End,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    pub(super) next: Vec<(Next, f64)>,
    /// A picture that a browser loads with it, nine times of ten.
    pub(super) companion: Option<usize>,
    /// Mean seconds of the database.
    pub(super) cost: f64,
}

/// See the module above.
#[derive(Clone, Debug)]
pub struct Site {
    pub(super) pages: Vec<Page>,
    /// Where sessions begin, with a weight.
    pub(super) homes: Vec<(usize, f64)>,
    /// Pages that use the database: the first 70 % of its time, the second 30.
    pub elephants: [usize; 2],
}

/// What all other pages cost, in seconds.
pub(super) const ANT: f64 = 0.0002;
/// Pages of a flow.
const FLOW: usize = 8;
/// Of them the search, whose picture comes after it.
const SEARCH: usize = 3;
/// The flow of the rare elephant, of so many: about as rare as one visitor in fifty.
const RARE: usize = 7;

/// Of `RUBiS`, as its authors have published it.
const AUCTION: &str = include_str!("../../../../lab/elephants/auction.csv");

impl Site {
    /// The seed's auction: 27 pages, and a logo that comes with each search.
    ///
    /// # Panics
    /// Never: the table is ours.
    pub fn auction() -> Self {
        let mut names: Vec<&str> = Vec::new();
        let mut pages: Vec<Page> = Vec::new();
        let lines = AUCTION.lines().filter(|line| !line.starts_with('#'));
        let mut steps = Vec::new();
        for line in lines {
            let mut fields = line.split(',');
            let mut next = || fields.next().expect("a table of ours has three fields");
            let (from, to, weight) = (next(), next(), next().parse::<f64>().expect("a number"));
            if !names.contains(&from) {
                names.push(from);
            }
            steps.push((from, to, weight));
        }
        pages.resize_with(names.len() + 1, Page::default);
        let of = |name: &str| {
            names.iter().position(|known| *known == name).expect("a page has a way on")
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

    /// So many pages in flows of eight, some far more popular than others (Zipf's law).
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

    /// Pages and pictures.
    pub fn urls(&self) -> usize {
        self.pages.len()
    }

    /// Seconds of the database for a request of this page.
    pub fn cost(&self, page: usize) -> f64 {
        self.pages[page].cost
    }

    /// Sets costs: `rates` are parts of all requests by page, and a request costs so many seconds on average.
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
