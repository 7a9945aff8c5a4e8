// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Text for a terminal of 80 columns.
#pragma once

#include <cstddef>
#include <string>

namespace ib::softib {

inline constexpr std::size_t kColumns = 80;

// Lines of at most `width` columns; those after the first begin with `indent` blanks, the first one
// behind `taken` columns that the caller has filled.
std::string wrap_words(const std::string& text, std::size_t width, std::size_t indent,
                       std::size_t taken = 0);

}  // namespace ib::softib
