// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For control_matrix_test.cpp: the two texts with which the requests are compared.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ib::drivers::test {

// The errors with which a code can end according to verbs/control.h: those of every request, those
// of its group and its own. By the name of the code; "" has those of every request.
class DocumentedErrors {
 public:
  DocumentedErrors();
  bool has(std::string_view code, const std::string& status) const;

 private:
  std::map<std::string, std::set<std::string>, std::less<>> by_code_;
};

// Checks, or writes, the part of docs/control_matrix.md that is about these requests.
void expect_matrix(const std::vector<std::string>& lines);

}  // namespace ib::drivers::test
