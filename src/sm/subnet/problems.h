// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Problems that a subnet manager has found, for its administrator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ib::sm {

enum class ProblemKind : std::uint8_t {
  Silent,         // a link is up, and what is behind it does not answer
  DuplicateGuid,  // two nodes have the same
  Loop,           // a cable joins a port to itself
  ForeignKey,     // a port is protected by the M_Key of another manager
  Unanswered,     // a Set had no answer
  Refused,        // a request was answered with an error
  TooFar,         // more than 63 hops, or more than a routing engine counts
  NoLids,         // they do not suffice
  Routing,        // an engine cannot do it
  Partitions,     // a table is too short
  Trap,           // an agent tells of errors
};

struct Problem {
  ProblemKind kind = ProblemKind::Silent;
  std::uint64_t guid = 0;  // of the node, or 0
  std::uint32_t port = 0;  // its number
  std::string text;        // a sentence
};

// Each once, and no more than a log of them is read.
class Problems {
 public:
  static constexpr std::size_t kMost = 1000;

  bool add(Problem problem) {
    for (const Problem& other : all_) {
      if (other.kind == problem.kind && other.guid == problem.guid && other.port == problem.port &&
          (problem.guid != 0 || other.text == problem.text)) {
        return false;
      }
    }
    if (all_.size() >= kMost) {
      ++left_out_;
      return false;
    }
    all_.push_back(std::move(problem));
    return true;
  }
  bool has(ProblemKind kind) const {
    for (const Problem& problem : all_) {
      if (problem.kind == kind) return true;
    }
    return false;
  }
  const std::vector<Problem>& all() const { return all_; }
  std::size_t left_out() const { return left_out_; }
  // A new sweep begins, which finds again all that is still wrong.
  void begin_round() {
    std::erase_if(all_, [](const Problem& problem) { return problem.kind != ProblemKind::Trap; });
    left_out_ = 0;
  }

 private:
  std::vector<Problem> all_;
  std::size_t left_out_ = 0;
};

}  // namespace ib::sm
