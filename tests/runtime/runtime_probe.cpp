// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A library with a C++ runtime of its own, as those are that softib loads into programs.
#include <exception>
#include <random>
#include <stdexcept>
#include <string>

namespace {

struct CountsEnds {
  explicit CountsEnds(int& count) : count_(count) {}
  CountsEnds(const CountsEnds&) = delete;
  CountsEnds& operator=(const CountsEnds&) = delete;
  ~CountsEnds() { ++count_; }

 private:
  int& count_;
};

[[gnu::noinline]] void descend(int depth, int& ended) {
  const CountsEnds each(ended);
  if (depth == 0) throw std::runtime_error(std::to_string(ended));
  descend(depth - 1, ended);
}

}  // namespace

extern "C" {

// Throws below `depth` frames and catches it; returns how many frames were left in order.
[[gnu::visibility("default")]] int probe_throw(int depth);
int probe_throw(int depth) {
  int ended = 0;
  try {
    descend(depth, ended);
  } catch (const std::exception& error) {
    return error.what() == std::string("0") ? ended : -1;
  }
  return -1;
}

[[gnu::visibility("default")]] unsigned probe_random();
unsigned probe_random() {
  std::random_device device("arc4random");
  return device();
}

}  // extern "C"
