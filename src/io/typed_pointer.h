// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A pointer that carries the type of its target, for the `void*` that a driver leaves with an
// object and for the parameters of a request.
#pragma once

#include "base/assert.h"
#include "base/export.h"

namespace ib::io {

class TypedPointer {
 public:
  template <class T>
  void set(T* value) {
    value_ = value;
    type_ = value == nullptr ? nullptr : &tag<T>;
  }
  // Returns nullptr if nothing was set; another type is a bug.
  template <class T>
  T* get() const {
    IB_ASSERT(type_ == nullptr || type_ == &tag<T>);
    return static_cast<T*>(value_);
  }

 private:
  // One address per type, in all modules. Not const: constants of equal value might be merged.
  template <class T>
  IB_DRIVER_API static inline char tag = 0;

  void* value_ = nullptr;
  const void* type_ = nullptr;
};

}  // namespace ib::io
