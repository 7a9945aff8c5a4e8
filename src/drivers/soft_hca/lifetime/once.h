// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Once: something to do later, exactly once. Move-only, so that it can own an IrpRef, which
// std::function cannot (std::move_only_function is C++23).
#pragma once

#include "base/assert.h"

#include <memory>
#include <type_traits>
#include <utility>

namespace ib::drivers {

class Once {
 public:
  Once() = default;
  template <class F>
  requires(!std::is_same_v<F, Once>) Once(F f) : body_(std::make_unique<Held<F>>(std::move(f))) {}

  explicit operator bool() const { return body_ != nullptr; }
  void operator()() {
    IB_ASSERT(body_ != nullptr);
    const std::unique_ptr<Body> body = std::move(body_);  // it may destroy or replace us
    body->run();
  }

 private:
  struct Body {
    virtual ~Body() = default;
    virtual void run() = 0;
  };
  template <class F>
  struct Held final : Body {
    explicit Held(F body) : f(std::move(body)) {}
    void run() override { f(); }
    F f;
  };
  std::unique_ptr<Body> body_;
};

}  // namespace ib::drivers
