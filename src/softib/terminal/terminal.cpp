// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/terminal/terminal.h"

#include "softib/terminal/columns.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace ib::softib {
namespace {

constexpr std::size_t kNarrowest = 20;  // pages are not made for less

// Characters that take a column: neither escape sequences nor the later bytes of UTF-8.
std::size_t width_of(const std::string& line) {
  std::size_t width = 0;
  bool is_escape = false;
  for (const char c : line) {
    if (c == '\033') is_escape = true;
    const bool is_later_byte = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    if (!is_escape && !is_later_byte) ++width;
    if (is_escape && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) is_escape = false;
  }
  return width;
}

std::size_t rows_of(const std::string& line, std::size_t columns) {
  return std::max<std::size_t>(1, (width_of(line) + columns - 1) / columns);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace

TerminalSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

std::size_t page_columns() {
  const std::size_t columns = terminal_size().columns;
  return columns == 0 ? kColumns : std::clamp(columns, kNarrowest, kColumns);
}

std::string fit_to(const std::string& text, TerminalSize size) {
  if (size.columns == 0 || size.rows < 2) return text;
  const std::vector<std::string> lines = lines_of(text);
  std::size_t rows = 0;
  for (const std::string& line : lines) rows += rows_of(line, size.columns);
  if (rows < size.rows) return text;  // the cursor stands in the row behind them
  std::string shown;
  std::size_t used = 0;
  std::size_t count = 0;
  while (count < lines.size()) {
    used += rows_of(lines[count], size.columns);
    if (used + 2 > size.rows) break;
    shown += lines[count++] + '\n';
  }
  return shown + fmt::format("... {} more lines\n", lines.size() - count);
}

}  // namespace ib::softib
