// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An array that needs no heap for the usual few entries.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace ib::host_abi::sockets {

template <class T, std::size_t Few>
class Scratch {
 public:
  explicit Scratch(std::size_t count) {
    data_ = count <= Few ? few_ : static_cast<T*>(std::calloc(count, sizeof(T)));
  }
  ~Scratch() {
    if (data_ != few_) std::free(data_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  // Returns nullptr if there is no memory.
  T* get() { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }

 private:
  T few_[Few]{};
  T* data_ = nullptr;
};

}  // namespace ib::host_abi::sockets
