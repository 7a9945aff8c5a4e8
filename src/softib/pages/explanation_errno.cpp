// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Errors of calls: by number, by name and by the text of strerror().
#include "softib/pages/explanation.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

namespace ib::softib {
namespace {

constexpr int kMost = 133;  // the last errno of Linux
constexpr const char* kTrace = "`softib trace` has the call and the reason, if softib refused it.";

struct Row {
  int number;
  const char* meaning;
  const char* advice;
};

// As calls of libibverbs return them; explain_connection() has those of librdmacm.
constexpr std::array kRows = {
    Row{ENOENT, "A handle names no object of this program, or a file is not there.", kTrace},
    Row{EIO, "softibd is gone, or a child made by fork() uses objects of its parent.",
        "`softib list` shows whether the fabric is up. A child opens the device itself."},
    Row{EAGAIN, "Nothing is there yet, and the descriptor does not wait (O_NONBLOCK).",
        "Poll the descriptor first."},
    Row{ENOMEM,
        "ibv_post_*: the queue is full. ibv_create_*, ibv_reg_mr, ibv_alloc_*: a limit of the HCA, "
        "of the fabric or of this process is reached.",
        "A full queue: poll completions, and signal one request in max_send_wr at least. Else "
        "`softib trace` names the limit."},
    Row{EACCES, "The access flags do not allow it, or the file belongs to another user.", kTrace},
    Row{EFAULT, "An address is not mapped, or not for this: of ibv_reg_mr, the range.",
        "Check address and length; memory to write to has to be writable."},
    Row{EBUSY, "Other objects need this one.",
        "Destroy queue pairs before completion queues, both and all regions before the protection "
        "domain; `softib resources` lists what is left."},
    Row{ENODEV, "The HCA was pulled out, or there is none.",
        "`softib status` for the HCAs; does the program run under `softib run`?"},
    Row{EINVAL,
        "An argument is out of range, does not fit the state of the object, or is of another "
        "program or HCA.",
        "`softib trace` says which one."},
    Row{ENFILE, "The machine has no room for more open files.", "Raise fs.file-max."},
    Row{EMFILE, "This process has as many files open as it may.", "Raise `ulimit -n`."},
    Row{ENOSPC, "There is no room in a table or on a file system.", kTrace},
    Row{ENOSYS, "softib does not have this call.", "docs/status.md lists what it has."},
    Row{EOPNOTSUPP, "softib, or this kind of object, does not have this operation.",
        "docs/status.md lists what it has; ibv_query_device(_ex) tells a program."},
    Row{ECONNREFUSED,
        "Over TCP: nobody listens on that port, because the server has not come so far, or runs "
        "on another node.",
        "`softib wait --listen PORT` before the client starts; it says who listens elsewhere."},
};

const Row* row_of(int number) {
  for (const Row& row : kRows) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

// "errno 12", "error -12", "-12"; a bare number is of another vocabulary.
int number_of(std::string_view word) {
  const std::size_t start = word.find_last_of(" ,:=(") + 1;
  std::string_view last = word.substr(start);
  while (last.ends_with(')') || last.ends_with('.')) last.remove_suffix(1);
  const bool is_negative = last.starts_with('-');
  if (is_negative) last.remove_prefix(1);
  const auto number = number_in(last);
  if (!number || *number < 1 || *number > kMost) return 0;
  const std::string before = plain_letters(word.substr(0, start));
  const bool is_errno = before == "errno" || before == "error" || before == "err";
  return is_errno || (is_negative && before.empty()) ? static_cast<int>(*number) : 0;
}

}  // namespace

std::string explain_errno(std::string_view word) {
  const std::string wanted = plain_letters(word);
  int number = number_of(word);
  for (int i = 1; number == 0 && i <= kMost; ++i) {
    const char* const name = ::strerrorname_np(i);
    if (name == nullptr) continue;
    if (wanted == plain_letters(name) || wanted == plain_letters(::strerrordesc_np(i))) number = i;
  }
  const char* const name = number != 0 ? ::strerrorname_np(number) : nullptr;
  if (name == nullptr) return {};
  const std::string title =
      fmt::format("errno {}: {} ({})", number, name, ::strerrordesc_np(number));
  const Row* row = row_of(number);
  const std::string connection = explain_connection(fmt::format("errno {}", number));
  if (row == nullptr) {
    if (!connection.empty()) return connection;
    return card(title, {name, "No call of softib fails with it for a reason of its own.", kTrace});
  }
  return card(title, {name, row->meaning, row->advice}) + connection;
}

std::vector<std::string_view> errno_texts() {
  std::vector<std::string_view> texts;
  for (int i = 1; i <= kMost; ++i) {
    if (const char* const text = ::strerrordesc_np(i); text != nullptr) texts.emplace_back(text);
  }
  return texts;
}

}  // namespace ib::softib
