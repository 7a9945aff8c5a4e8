// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The legal changes of a queue pair: the transitions of [IBA1 10.3.1] and the attributes that each
// requires and allows [IBA1 11.2.5.2]. Pure; values of attributes are checked elsewhere.
//
// The table accepts exactly what the Linux kernel accepts (ib_modify_qp_is_ok), since programs are
// written against that. So Reset to Error is not legal here although the clause would allow it.
#pragma once

#include "verbs/types.h"

#include <cstdint>
#include <string>

namespace ib::verbs {

struct QpTransition {
  bool legal = false;
  std::uint32_t required = 0;  // qp_attr mask; kState itself is not in it
  std::uint32_t optional = 0;
};

// The attributes that modify-QP may carry from one state to another (or within one).
QpTransition qp_transition(QpType type, QpState from, QpState to);

enum class QpModifyVerdict : std::uint32_t {
  Ok,
  NoSuchTransition,
  MissingAttributes,
  ExtraAttributes
};

struct QpModifyCheck {
  QpModifyVerdict verdict = QpModifyVerdict::Ok;
  std::uint32_t attributes = 0;  // attributes that are missing, or not allowed
};

// `mask` as the program gave it.
QpModifyCheck check_qp_modify(QpType type, QpState from, QpState to, std::uint32_t mask);

const char* qp_state_name(QpState state);       // "RTR"; never null
const char* qp_type_name(QpType type);          // "RC"; never null
std::string qp_attr_names(std::uint32_t mask);  // "IBV_QP_AV, IBV_QP_PATH_MTU"

// Returns the reason of a refusal, in words that name the transition and the attributes.
std::string explain_qp_modify(QpType type, QpState from, QpState to, const QpModifyCheck& check);

}  // namespace ib::verbs
