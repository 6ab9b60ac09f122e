// The recipe for BLAS, with OpenBLAS.
#include "recipes.h"

#include "sert_blas.h"

using namespace recipes;

namespace {

using Matrix = std::vector<double>;

Matrix make(int rows, int columns, unsigned seed) {
    Matrix matrix(static_cast<size_t>(rows) * static_cast<size_t>(columns));
    for (double &number : matrix) number = static_cast<double>((seed = seed * 1664525 + 1013904223) >> 24);
    return matrix;
}

volatile bool multiplied;

// Returns whether the first product of a process makes its request unstoppable: OpenBLAS then maps
// its work buffer.
bool makes_unstoppable(void (*multiply)(const Matrix &a, const Matrix &b, Matrix &c)) {
    openblas_set_num_threads(1);
    Matrix a = make(300, 300, 1), b = make(300, 300, 2), c(a.size());
    start_library(granted(3600 * 1000, 3600 * 1000));
    CHECK(request([&] { multiply(a, b, c); }) == 0);
    return stats().cancelled == 1;
}
void without_the_recipe_the_first_product_makes_a_request_unstoppable() {
    CHECK(makes_unstoppable([](const Matrix &a, const Matrix &b, Matrix &c) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 300, 300, 300, 1, a.data(), 300, b.data(), 300, 0,
                    c.data(), 300);
    }));
}
void with_it_the_request_stays_stoppable() {
    CHECK(!makes_unstoppable([](const Matrix &a, const Matrix &b, Matrix &c) {
        sert_dgemm(300, 300, 300, 1, a.data(), 300, b.data(), 300, 0, c.data(), 300);
    }));
}

void without_tiles_a_stop_waits_for_the_product() {
    openblas_set_num_threads(1);
    constexpr int SIDE = 1500;
    Matrix a = make(SIDE, SIDE, 1), b = make(SIDE, SIDE, 2), c(a.size());
    sert_dgemm(300, 300, 300, 1, a.data(), SIDE, b.data(), SIDE, 0, c.data(), SIDE);
    start_library(granted(2, 2));
    CHECK(request([&] {
              cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, a.data(), SIDE, b.data(), SIDE, 0,
                          c.data(), SIDE);
              multiplied = true;
              for_ever();
          }) == SERT_RAN_TOO_LONG);
    CHECK(multiplied);
    CHECK(stats().gated > 0);
}

// Sides that no tile divides. All numbers are whole, so both results are exact.
void tiles_give_the_same_product() {
    constexpr int M = 700, N = 650, K = 1100;
    Matrix a = make(M, K, 1), b = make(K, N, 2), c = make(M, N, 3), expected = c;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, 2, a.data(), K, b.data(), N, 3, expected.data(), N);
    sert_dgemm(M, N, K, 2, a.data(), K, b.data(), N, 3, c.data(), N);
    CHECK(c == expected);
}

void a_stopped_product_leaves_nothing() {
    openblas_set_num_threads(1);
    constexpr int SIDE = 1500;
    Matrix a = make(SIDE, SIDE, 1), b = make(SIDE, SIDE, 2);
    start_library(granted(30, 30));
    stops_leave_nothing([&] {
        for (;;) {
            Matrix c(a.size());
            sert_dgemm(SIDE, SIDE, SIDE, 1, a.data(), SIDE, b.data(), SIDE, 0, c.data(), SIDE);
        }
    });
    tiles_give_the_same_product();
}

}  // namespace

int main(int argc, char **argv) {
    return main_of(argc, argv,
                   {TEST("first", without_the_recipe_the_first_product_makes_a_request_unstoppable),
                    TEST("stoppable", with_it_the_request_stays_stoppable),
                    TEST("waits", without_tiles_a_stop_waits_for_the_product), TEST("same", tiles_give_the_same_product),
                    TEST("nothing", a_stopped_product_leaves_nothing)});
}
