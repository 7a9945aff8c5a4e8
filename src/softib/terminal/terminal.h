// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The terminal of standard output: how wide pages are, and what of one fits.
#pragma once

#include <cstddef>
#include <string>

namespace ib::softib {

struct TerminalSize {
  std::size_t columns = 0;  // 0: it is none, or does not tell
  std::size_t rows = 0;
};
TerminalSize terminal_size();

// Of a page: kColumns, or fewer on a terminal that has fewer.
std::size_t page_columns();

// The lines of `text` that a terminal of this size can show, and as the last one how many more
// there are. Escape sequences take no column; a line that is too long takes several rows.
std::string fit_to(const std::string& text, TerminalSize size);

}  // namespace ib::softib
