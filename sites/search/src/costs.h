// What requests cost that nobody has chosen: for the distribution.
#pragma once

#include "service.h"

namespace search {

// Microseconds of processor time of so many requests, one a line. 0, or 1 if that cannot be written.
int print_costs(const Service &service, long requests);

}  // namespace search
